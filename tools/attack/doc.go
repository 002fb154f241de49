// Attack gives ashlar inputs that want to bring it down, and judges what it makes of
// them: package internal/test/attack. It ends with status 1 if there are findings, and
// leaves their inputs in a folder.
//
//	go -C tools run ./attack -bin ../bin/ashlar -seed 7 -minutes 60
package main
