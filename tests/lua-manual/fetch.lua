--: http http-request redirect location /%[lua.hello]
--: ask http GET / => \r\nlocation: /hello\r\n
core.register_fetches("hello", function(txn) return "hello" end)
