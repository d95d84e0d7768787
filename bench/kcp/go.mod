module kcp-pair

go 1.25

require github.com/xtaci/kcp-go v5.4.20+incompatible

require (
	github.com/klauspost/cpuid/v2 v2.0.6 // indirect
	github.com/klauspost/reedsolomon v1.9.14 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/templexxx/cpufeat v0.0.0-20180724012125-cef66df7f161 // indirect
	github.com/templexxx/xor v0.0.0-20191217153810-f85b25db303b // indirect
	github.com/tjfoc/gmsm v1.4.1 // indirect
	golang.org/x/crypto v0.35.0 // indirect
	golang.org/x/net v0.23.0 // indirect
	golang.org/x/sys v0.30.0 // indirect
)
