module weir.test/tls

go 1.22
