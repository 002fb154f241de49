package pickle

import "fmt"

// The opcodes of protocols 0 to 5.
const (
	opMark           = '('
	opStop           = '.'
	opPop            = '0'
	opPopMark        = '1'
	opDup            = '2'
	opFloat          = 'F'
	opInt            = 'I'
	opBinInt         = 'J'
	opBinInt1        = 'K'
	opLong           = 'L'
	opBinInt2        = 'M'
	opNone           = 'N'
	opPersID         = 'P'
	opBinPersID      = 'Q'
	opReduce         = 'R'
	opString         = 'S'
	opBinString      = 'T'
	opShortBinString = 'U'
	opUnicode        = 'V'
	opBinUnicode     = 'X'
	opAppend         = 'a'
	opBuild          = 'b'
	opGlobal         = 'c'
	opDict           = 'd'
	opAppends        = 'e'
	opGet            = 'g'
	opBinGet         = 'h'
	opInst           = 'i'
	opLongBinGet     = 'j'
	opList           = 'l'
	opObj            = 'o'
	opPut            = 'p'
	opBinPut         = 'q'
	opLongBinPut     = 'r'
	opSetItem        = 's'
	opTuple          = 't'
	opSetItems       = 'u'
	opBinBytes       = 'B'
	opShortBinBytes  = 'C'
	opBinFloat       = 'G'
	opEmptyTuple     = ')'
	opEmptyList      = ']'
	opEmptyDict      = '}'

	opProto           = 0x80
	opNewObj          = 0x81
	opExt1            = 0x82
	opExt2            = 0x83
	opExt4            = 0x84
	opTuple1          = 0x85
	opTuple2          = 0x86
	opTuple3          = 0x87
	opNewTrue         = 0x88
	opNewFalse        = 0x89
	opLong1           = 0x8a
	opLong4           = 0x8b
	opShortBinUnicode = 0x8c
	opBinUnicode8     = 0x8d
	opBinBytes8       = 0x8e
	opEmptySet        = 0x8f
	opAddItems        = 0x90
	opFrozenSet       = 0x91
	opNewObjEx        = 0x92
	opStackGlobal     = 0x93
	opMemoize         = 0x94
	opFrame           = 0x95
	opByteArray8      = 0x96
	opNextBuffer      = 0x97
	opReadonlyBuffer  = 0x98
)

// argBytes is the number of bytes of fixed length behind an opcode.
var argBytes = [256]uint8{
	opBinInt: 4, opBinInt1: 1, opBinInt2: 2, opBinString: 4, opShortBinString: 1, opBinUnicode: 4,
	opBinGet: 1, opLongBinGet: 4, opBinPut: 1, opLongBinPut: 4, opBinBytes: 4, opShortBinBytes: 1,
	opBinFloat: 8, opProto: 1, opExt1: 1, opExt2: 2, opExt4: 4, opLong1: 1, opLong4: 4,
	opShortBinUnicode: 1, opBinUnicode8: 8, opBinBytes8: 8, opFrame: 8, opByteArray8: 8,
}

// maxOp is the length of the longest opcode with its fixed bytes. minWindow is
// what must be in sight: an opcode and the one behind a FRAME after it.
const (
	maxOp     = 9
	minWindow = 2*maxOp + 2
)

// The opcode after the one that fills a container can show that nothing
// more will be put into it. These take the container from the stack; behind a
// dictionary, so does in effect one that makes another dictionary, because
// that can be no key of the first.
var takes = [256]bool{
	opAppends: true, opSetItems: true, opAppend: true, opSetItem: true, opStop: true,
	opTuple: true, opTuple1: true, opTuple2: true, opTuple3: true,
}

var completesDict = func() [256]bool {
	t := takes
	t[opEmptyDict] = true
	return t
}()

// forbidden are the opcodes that import, call or build.
var forbidden = map[byte]string{
	opPersID: "PERSID", opBinPersID: "BINPERSID", opBuild: "BUILD", opInst: "INST", opObj: "OBJ",
	opNewObj: "NEWOBJ", opNewObjEx: "NEWOBJ_EX", opExt1: "EXT1", opExt2: "EXT2", opExt4: "EXT4",
	opNextBuffer: "NEXT_BUFFER", opReadonlyBuffer: "READONLY_BUFFER",
}

func unknownOp(op byte) error {
	if op > ' ' && op < 0x7f {
		return fmt.Errorf("%q is no pickle opcode: the file is damaged or no pickle", op)
	}
	return fmt.Errorf("%#02x is no pickle opcode: the file is damaged or no pickle", op)
}
