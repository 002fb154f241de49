// Package page drives the page of ashlar view in a real browser, for tests,
// screenshots and measurements: it starts the server and Chromium or Firefox, and
// does what a person does, with the mouse and the keyboard.
package page
