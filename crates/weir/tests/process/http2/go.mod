module http2test

go 1.24
