--: log Hello World !
core.Alert("Hello World !");
