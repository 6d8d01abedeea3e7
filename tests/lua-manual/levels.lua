--: log one
--: log two
--: log three
--: log four
--: log five
core.log(core.err, "one")
core.Debug("two")
core.Info("three")
core.Warning("four")
core.Alert("five")
