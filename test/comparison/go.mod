module server_rental_exporter/test/comparison

go 1.26.0

require (
	github.com/fxamacker/cbor/v2 v2.9.3
	golang.org/x/sys v0.49.0
)

require github.com/x448/float16 v0.8.4 // indirect
