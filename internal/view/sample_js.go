package view

// A page that needs no server is small: it has no sample.
var sample []byte

const sampleName = ""
