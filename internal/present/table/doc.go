// Package table writes rows as CSV or as Parquet while they come, holding no more
// than some ten thousand of them.
//
// Its Parquet is plain: integers and texts that may be null, texts by dictionary,
// pages compressed with gzip. The library behind ashlar convert knows far more
// encodings, and would nearly double the page that needs no server.
package table
