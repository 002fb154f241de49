// Screenshots writes a picture of every screen, light and dark, in two sizes.
//
//	go run ./cmd/screenshots [-ashlar PROGRAM] [-out FOLDER] [-only NAME] [FILE...]
package main
