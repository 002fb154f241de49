package page

import (
	"bytes"
	"compress/zlib"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
)

// PageTexts returns the text of each page of a PDF as Chromium writes it: objects
// one after the other, streams deflated, text as numbers of glyphs, and for each
// font a table of what they stand for.
func PageTexts(pdf []byte) ([]string, error) {
	objects := map[string][]byte{}
	var pages [][]byte
	for _, m := range pdfObject.FindAllSubmatch(pdf, -1) {
		objects[string(m[1])] = m[2]
		if pdfPage.Match(m[2]) {
			pages = append(pages, m[2])
		}
	}
	var out []string
	for i, p := range pages {
		fonts := map[string]map[string]string{}
		for _, m := range pdfFont.FindAllSubmatch(p, -1) {
			if table := pdfTable.FindSubmatch(objects[string(m[2])]); table != nil {
				text, err := inflate(objects[string(table[1])])
				if err != nil {
					return nil, err
				}
				fonts[string(m[1])] = glyphs(text)
			}
		}
		contents := pdfContents.FindSubmatch(p)
		if contents == nil {
			return nil, fmt.Errorf("page %d has no contents", i+1)
		}
		drawn, err := inflate(objects[string(contents[1])])
		if err != nil {
			return nil, err
		}
		out = append(out, textOf(drawn, fonts))
	}
	return out, nil
}

var (
	pdfObject   = regexp.MustCompile(`(?s)(\d+) 0 obj\s(.*?)endobj`)
	pdfPage     = regexp.MustCompile(`/Type\s*/Page\b`)
	pdfFont     = regexp.MustCompile(`/(F\d+) (\d+) 0 R`)
	pdfTable    = regexp.MustCompile(`/ToUnicode (\d+) 0 R`)
	pdfContents = regexp.MustCompile(`/Contents (\d+) 0 R`)
	pdfStream   = regexp.MustCompile(`(?s)stream\r?\n(.*)endstream`)
	pdfDrawn    = regexp.MustCompile(`/(F\d+) [\d.]+ Tf|<([0-9A-Fa-f]+)>|ET`)
	pdfChars    = regexp.MustCompile(`(?s)beginbf(char|range)(.*?)endbf`)
	pdfCode     = regexp.MustCompile(`<([0-9A-Fa-f]+)>`)
)

func inflate(object []byte) ([]byte, error) {
	m := pdfStream.FindSubmatch(object)
	if m == nil {
		return nil, fmt.Errorf("%.60q has no stream", object)
	}
	r, err := zlib.NewReader(bytes.NewReader(m[1]))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// glyphs reads a table: pairs of a glyph and its text, and ranges of glyphs with
// the text of the first.
func glyphs(table []byte) map[string]string {
	out := map[string]string{}
	for _, m := range pdfChars.FindAllSubmatch(table, -1) {
		codes := pdfCode.FindAllSubmatch(m[2], -1)
		if string(m[1]) == "char" {
			for i := 0; i+1 < len(codes); i += 2 {
				out[strings.ToUpper(string(codes[i][1]))] = utf16Text(string(codes[i+1][1]))
			}
			continue
		}
		for i := 0; i+2 < len(codes); i += 3 {
			first, _ := strconv.ParseUint(string(codes[i][1]), 16, 16)
			last, _ := strconv.ParseUint(string(codes[i+1][1]), 16, 16)
			text, _ := strconv.ParseUint(string(codes[i+2][1]), 16, 16)
			for g := first; g <= last; g++ {
				out[fmt.Sprintf("%04X", g)] = string(rune(text + g - first))
			}
		}
	}
	return out
}

func utf16Text(digits string) string {
	raw, _ := hex.DecodeString(digits)
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = uint16(raw[2*i])<<8 | uint16(raw[2*i+1])
	}
	return string(utf16.Decode(units))
}

// textOf follows the fonts and glyphs of a page.
func textOf(drawn []byte, fonts map[string]map[string]string) string {
	var b strings.Builder
	font := map[string]string{}
	for _, m := range pdfDrawn.FindAllSubmatch(drawn, -1) {
		switch {
		case m[1] != nil:
			font = fonts[string(m[1])]
		case m[2] != nil:
			for g := strings.ToUpper(string(m[2])); len(g) >= 4; g = g[4:] {
				b.WriteString(font[g[:4]])
			}
		default:
			b.WriteByte(' ')
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
