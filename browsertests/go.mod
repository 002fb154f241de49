module github.com/ashlar-mem/ashlar/browsertests

go 1.26.0

require (
	github.com/ashlar-mem/ashlar v0.0.0-00010101000000-000000000000
	github.com/chromedp/cdproto v0.157.8
	github.com/chromedp/chromedp v0.21.0
)

require (
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
)

replace github.com/ashlar-mem/ashlar => ../
