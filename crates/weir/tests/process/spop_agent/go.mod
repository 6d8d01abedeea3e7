module agent

go 1.23

require github.com/dropmorepackets/haproxy-go v0.0.8
