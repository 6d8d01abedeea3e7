//! Functions that need no stream, with their results in HAProxy 3.5, row by row; and scripts that exceed limits.

use super::*;

pub(crate) fn machine(limits: &str) -> Arc<Machine> {
    let text = format!("global\n{limits}\n");
    let file = config::InputFile { name: "haproxy.cfg".to_owned(), bytes: text.into_bytes() };
    let loaded = config::load(&[file], config::environment::Environment::new(), &config::LoadOptions::default());
    let spec = loaded.spec.global.lua;
    let memory = spec.maxmem as usize * (1 << 20);
    let machine = Machine::new(&spec, 0, ScriptLimits::new(&spec, 1), memory).expect("a state");
    crate::time_limits::open(&machine).expect("its functions");
    machine
}

/// Returns the values of a chunk, formatted as sequences and texts.
fn evaluate(machine: &Arc<Machine>, text: &str) -> Result<String, String> {
    const SHOW: &str = "local function show(v) if type(v) == 'table' then local r = {} for i = 1, #v do r[i] = show(v[i]) end \
         return '{' .. table.concat(r, ',') .. '}' end return tostring(v) end return show";
    let (show, function) = machine.with(|lua| {
        let show: Function = lua.load(SHOW).call(()).expect("a function");
        (show, lua.load(text).set_name("@s.lua").into_function().expect("a script"))
    });
    let values = at_once(machine, function, Vec::new(), false)?;
    let value = values.front().cloned().unwrap_or(Value::Nil);
    machine.with(|_| show.call::<String>(value)).map_err(|error| error.to_string())
}

#[test]
fn functions_return_what_haproxys_return() {
    let rows = [
        ("_VERSION", "Lua 5.4"),
        ("core.tokenize('a,b,,c', ',')", "{a,b,,c}"),
        ("core.tokenize('a,b,,c', ',', true)", "{a,b,c}"),
        ("core.tokenize('', ',')", "{}"),
        ("core.tokenize('abc', '')", "{abc}"),
        ("core.tokenize(',a,', ',')", "{,a,}"),
        ("core.tokenize('a b.c', ' .', true)", "{a,b,c}"),
        ("core.match_addr(core.parse_addr('127.0.0.1/32'), core.parse_addr('127.0.0.0/8'))", "true"),
        ("core.match_addr(core.parse_addr('10.0.0.0/8'), core.parse_addr('10.1.2.3'))", "true"),
        ("core.match_addr(core.parse_addr('10.0.0.1'), core.parse_addr('11.1.2.3'))", "false"),
        ("core.match_addr(core.parse_addr('::1'), core.parse_addr('127.0.0.1'))", "false"),
        ("core.match_addr(core.parse_addr('2001:db8::/32'), core.parse_addr('2001:db8::1'))", "true"),
        ("core.match_addr(1, 2)", "false"),
        ("type(core.parse_addr('1.2.3.4'))", "userdata"),
        ("core.parse_addr('x')", "nil"),
        ("core.parse_addr('1.2.3.4/33')", "nil"),
        ("Regex.new('a(b', true)", "false"),
        ("(function() local _, r = Regex.new('a(b)(c)?', true) return {r:match('xabz')} end)()", "{true,{ab,b}}"),
        ("(function() local _, r = Regex.new('a(b)(c)?', true) return {r:match('xabcz')} end)()", "{true,{abc,b,c}}"),
        ("(function() local _, r = Regex.new('A', false) return {r:match('xax')} end)()", "{true,{a}}"),
        ("(function() local _, r = Regex.new('A', true) return {r:match('xax')} end)()", "{false,{}}"),
        ("(function() local _, r = Regex.new('A', true) return r:exec('xAx') end)()", "true"),
        ("(function() local _, r = Regex.new('A', true) return r:exec('xax') end)()", "false"),
        ("(function() local c = core.concat() c:add('a') c:add(5) c:add('') return c:dump() end)()", "a5"),
        (
            "(function() local q = core.queue() q:push('x') return {q:size(), q:pop(), tostring(q:pop())} end)()",
            "{1,x,nil}",
        ),
        ("core.http_date('Sun, 06 Nov 1994 08:49:37 GMT')", "784111777"),
        ("core.imf_date('Sun, 06 Nov 1994 08:49:37 GMT')", "784111777"),
        ("core.rfc850_date('Sunday, 06-Nov-94 08:49:37 GMT')", "784111777"),
        ("core.asctime_date('Sun Nov  6 08:49:37 1994')", "784111777"),
        ("core.imf_date('Sunday, 06-Nov-94 08:49:37 GMT')", "nil"),
        ("core.http_date('x')", "nil"),
        ("math.type(core.now().sec)", "integer"),
        ("core.thread", "0"),
        ("core.get_var('proc.x')", "nil"),
        ("core.silent .. core.emerg .. core.alert .. core.crit .. core.err .. core.warning .. core.debug", "-1012347"),
        (
            "act.CONTINUE .. act.STOP .. act.YIELD .. act.ERROR .. act.DONE .. act.DENY .. act.ABORT .. act.INVALID",
            "01234567",
        ),
        ("filter.CONTINUE .. filter.WAIT .. filter.ERROR .. filter.FLT_CFG_FL_HTX", "10-11"),
        ("tostring(core.queue())", "HAProxy class Queue"),
    ];
    let machine = machine("");
    for (text, expected) in rows {
        assert_eq!(evaluate(&machine, &format!("return {text}")).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn wrong_calls_are_errors_at_the_line_of_the_script() {
    let rows = [
        ("core.register_fetches('x')", "s.lua:1: 'register_fetches' needs 2 arguments"),
        (
            "core.register_service('a', 'x', print)",
            "s.lua:1: Lua service environment 'x' is unknown. 'tcp' or 'http' are expected.",
        ),
        (
            "core.register_action('a', {'x'}, print)",
            "s.lua:1: Lua action environment 'x' is unknown. 'tcp-req', 'tcp-res', 'http-req', 'http-res' or 'http-after-res' are expected.",
        ),
        (
            "core.register_action('a', 'http-req', print)",
            "s.lua:1: register_action: second argument must be a table of strings",
        ),
        (
            "core.register_action('a', {'http-req'}, 'x')",
            "s.lua:1: bad argument #3 to 'register_action' (function expected, got string)",
        ),
        ("core.log(99, 'x')", "s.lua:1: bad argument #1 to 'log' (Invalid loglevel.)"),
        ("core.log(core.silent, 'x')", "s.lua:1: bad argument #1 to 'log' (Invalid loglevel.)"),
        (
            "local x = core.get_var('txn.x')",
            "s.lua:1: 'get_var': Only 'proc.' scope allowed to be retrieved in 'core.get_var()'.",
        ),
        ("core.queue():push(nil)", "s.lua:1: unexpected argument"),
        ("\nerror('boom')", "s.lua:2: boom"),
        ("foo()", "s.lua:1: attempt to call a nil value (global 'foo')"),
    ];
    let machine = machine("");
    for (text, expected) in rows {
        assert_eq!(evaluate(&machine, text), Err(format!("Lua runtime error: {expected}")), "{text}");
    }
}

/// Runs a chunk like a fetch, and returns its error.
fn failure(limits: &str, text: &str) -> String {
    failure_of("sample-fetch 'f'", limits, text)
}

fn failure_of(what: &str, limits: &str, text: &str) -> String {
    let machine = machine(limits);
    let function = machine.with(|lua| lua.load(text).into_function().expect("a script"));
    let terms = RunTerms { what: what.into(), limit: machine.limits.session, yields: false };
    let mut run = Run::new(&machine, function, Vec::new(), terms).expect("a coroutine");
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match run.poll(&mut cx, None, &mut |_, _, _| Answer::Unknown) {
        std::task::Poll::Ready(Err(why)) => why,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_script_that_takes_too_much_is_ended() {
    let loops = [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do pcall(coroutine.wrap(function() while true do end end)) end",
        "local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end}) while true do pcall(function() return t[1] end) end",
    ];
    for text in loops {
        assert_eq!(failure(" tune.lua.burst-timeout 20ms", text), "Lua sample-fetch 'f': burst timeout.", "{text}");
    }
    let limits = " tune.lua.burst-timeout 0\n tune.lua.session-timeout 20ms";
    assert_eq!(failure(limits, "while true do end"), "Lua sample-fetch 'f': execution timeout.");
    let hungry = "local t = {} while true do t[#t + 1] = ('x'):rep(100000) .. #t end";
    assert_eq!(failure(" tune.lua.maxmem 8", hungry), "Lua sample-fetch 'f': out of memory error.");
    for pause in ["core.msleep(1)", "core.yield()", "coroutine.yield()"] {
        assert_eq!(failure("", pause), "Lua sample-fetch 'f': yield not allowed.", "{pause}");
        let told = "Lua converter 'f': yield functions like core.tcp() or core.sleep() are not allowed.";
        assert_eq!(failure_of("converter 'f'", "", pause), told, "{pause}");
    }
}

#[test]
fn libraries_are_those_that_were_asked_for() {
    let rows = [
        ("", "{true,true,true,true,true}"),
        (" tune.lua.openlibs none", "{false,false,false,false,true}"),
        (" tune.lua.openlibs string,table", "{true,true,false,false,true}"),
    ];
    for (limits, expected) in rows {
        let machine = machine(limits);
        let found: Vec<bool> = ["string", "table", "os", "io", "coroutine"]
            .map(|name| machine.with(|lua| lua.globals().contains_key(name)).expect("a table"))
            .into();
        assert_eq!(
            format!("{found:?}").replace(['[', ' '], "").replace(']', ""),
            expected.replace(['{', '}'], ""),
            "{limits}"
        );
    }
}

/// `debug` returns properties of functions, and changes nothing.
#[test]
fn the_library_debug_only_reads() {
    let rows = [
        ("", "debug.getinfo(1, 'S').source:sub(1, 1)", "@"),
        ("", "debug.getinfo(1, 'l').currentline", "1"),
        ("", "debug.getinfo(print).what", "C"),
        ("", "(function(a, b) return debug.getinfo(1, 'u').nparams end)(1, 2)", "2"),
        ("", "tostring(debug.getinfo(1000))", "nil"),
        ("", "tostring(debug.getinfo(1).func)", "nil"),
        ("", "tostring(select(2, pcall(debug.getinfo, 1, 'f'))):match('invalid option .f.')", "invalid option 'f'"),
        ("", "tostring(select(2, pcall(debug.getinfo, -1))):match('level out of range')", "level out of range"),
        ("", "tostring(select(2, pcall(debug.getinfo, {}))):match('number expected')", "number expected"),
        ("", "debug.traceback('m'):match('^m.stack traceback:.') ~= nil and 'yes'", "yes"),
        ("", "require('debug') == debug and 'same'", "same"),
        ("", "tostring(debug.sethook) .. tostring(debug.getupvalue) .. tostring(debug.getregistry)", "nilnilnil"),
        (" tune.lua.openlibs string", "tostring(debug)", "nil"),
        (" tune.lua.openlibs string,debug", "tostring(debug ~= nil)", "true"),
    ];
    for (limits, expression, expected) in rows {
        let machine = machine(limits);
        let text = format!("return tostring({expression})");
        let found: String = machine.with(|lua| lua.load(text).set_name("@script").eval()).expect(expression);
        assert_eq!(found, expected, "{expression}");
    }
}

/// Bytecode can access any memory: no function loads it.
#[test]
fn compiled_code_is_no_function() {
    const REFUSED: &str = "{nil,attempt to load a binary chunk (mode is 't')}";
    const CODE: &str = "string.dump(function() return 7 end)";
    let folder = std::env::temp_dir().join(format!("weir-lua-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    std::fs::write(path("text.lua"), "return 7").expect("a file");
    let machine = machine("");
    machine.with(|lua| lua.globals().set("folder", folder.to_string_lossy().into_owned())).expect("a name");
    let code = machine.with(|lua| lua.load(format!("return {CODE}")).eval::<mlua::LuaString>()).expect("code");
    std::fs::write(path("code.lua"), &*code.as_bytes()).expect("a file");
    let shown = |call: &str| format!("local f, why = {call} return {{f and tostring(f()) or 'nil', why or 'nil'}}");
    let rows = [
        (format!("load({CODE})"), REFUSED),
        (format!("load({CODE}, 'x', 'b')"), REFUSED),
        ("load('return 7', 'x', 'b')".to_owned(), REFUSED),
        (format!("load({CODE}, 'x', 'bt', {{}})"), REFUSED),
        ("load('return 7')".to_owned(), "{7,nil}"),
        ("load('return 7', 'x', 't')".to_owned(), "{7,nil}"),
        ("load('return v', 'x', 'bt', {v = 8})".to_owned(), "{8,nil}"),
        ("loadfile(folder .. '/code.lua', 'b')".to_owned(), REFUSED),
        ("loadfile(folder .. '/text.lua')".to_owned(), "{7,nil}"),
    ];
    for (call, expected) in rows {
        assert_eq!(evaluate(&machine, &shown(&call)).as_deref(), Ok(expected), "{call}");
    }
    let rows = ["return dofile(folder .. '/text.lua')", "package.path = folder .. '/?.lua' return require('text')"];
    for text in rows {
        assert_eq!(evaluate(&machine, text).as_deref(), Ok("7"), "{text}");
        let refused = evaluate(&machine, &text.replace("'text'", "'code'").replace("text.lua", "code.lua"));
        assert!(
            refused.as_ref().is_err_and(|why| why.contains("attempt to load a binary chunk")),
            "{text}: {refused:?}"
        );
    }
    std::fs::remove_dir_all(&folder).expect("the folder");
}

/// Scripts that use as many resources as they can, run with and without yields: each ends with HAProxy's message, and
/// the state continues to work.
#[test]
fn hostile_scripts_end_and_harm_nothing_else() {
    const ENDLESS: &str = " tune.lua.maxmem 16\n tune.lua.burst-timeout 50ms\n tune.lua.session-timeout 100ms";
    const GREEDY: &str = " tune.lua.maxmem 16\n tune.lua.burst-timeout 0\n tune.lua.session-timeout 0";
    let rows = [
        (GREEDY, "local function f() return 1 + f() end f()", ""),
        (GREEDY, "local s = 'x' while true do s = s .. s end", "out of memory error."),
        (GREEDY, "return ('x'):rep(1 << 28)", "out of memory error."),
        (GREEDY, "local t = {} for i = 1, 1e9 do t[i] = i end", "out of memory error."),
        (GREEDY, "local t = {} while true do t[#t + 1] = coroutine.create(function() end) end", "out of memory error."),
        (
            GREEDY,
            "local c = core.concat() while true do c:add(('x'):rep(1 << 20) .. #c.pieces) end",
            "out of memory error.",
        ),
        (GREEDY, "local f f = function() coroutine.wrap(f)() end f()", ""),
        (ENDLESS, "while true do end", "timeout."),
        (ENDLESS, "local f f = function() return f() end f()", "timeout."),
        (ENDLESS, "while true do pcall(error) end", "timeout."),
        (ENDLESS, "while true do string.rep('x', 1000) end", "timeout."),
        (
            ENDLESS,
            "local t = setmetatable({}, {__index = function(t, k) while true do end end}) return t.x",
            "timeout.",
        ),
        (ENDLESS, "setmetatable({}, {__gc = function() while true do end end}) collectgarbage()", "timeout."),
        (
            ENDLESS,
            "setmetatable({}, {__gc = function() while true do pcall(error) end end}) collectgarbage()",
            "timeout.",
        ),
        (ENDLESS, "for i = 1, 1e9 do setmetatable({}, {__gc = function() while true do end end}) end", "timeout."),
        (
            ENDLESS,
            "local function again() return setmetatable({}, {__gc = again}) end again() while true do collectgarbage() end",
            "timeout.",
        ),
        (
            GREEDY,
            "setmetatable({}, {__gc = function() local s = 'x' while true do s = s .. s end end}) collectgarbage()",
            "",
        ),
        (GREEDY, "setmetatable({}, {__gc = function(own) kept = own error('x') end}) collectgarbage()", "ended"),
        (GREEDY, "setmetatable({}, {__gc = coroutine.yield}) collectgarbage()", "ended"),
        (ENDLESS, "table.move({1}, 1, 1 << 61, 2)", "timeout."),
        (ENDLESS, "table.move({1}, 1, 1 << 61, 1, {})", "timeout."),
        (ENDLESS, "table.insert(setmetatable({}, {__len = function() return 1 << 61 end}), 1, 1)", "timeout."),
        (ENDLESS, "table.remove(setmetatable({}, {__len = function() return 1 << 61 end}), 1)", "timeout."),
        (GREEDY, "table.concat(setmetatable({}, {__index = tostring}), '', 1, 1 << 61)", "out of memory error."),
        (GREEDY, "table.concat({}, ',', 1, 1 << 61)", "invalid value (nil) at index 1 in table for 'concat'"),
        (GREEDY, "('x'):rep(1 << 62)", ""),
        (GREEDY, "table.unpack({}, 1, 1 << 40)", "too many results to unpack"),
        (ENDLESS, "load(function() return ' ' end)", "timeout."),
        (ENDLESS, "local t <close> = setmetatable({}, {__close = function() while true do end end})", "timeout."),
    ];
    for (limits, text, expected) in rows {
        let machine = machine(limits);
        for yields in [false, true] {
            let function = machine.with(|lua| lua.load(text).into_function().expect("a script"));
            let terms = RunTerms { what: "action 'a'".into(), limit: machine.limits.session, yields };
            let why = match Run::new(&machine, function, Vec::new(), terms) {
                Err(why) => why,
                Ok(mut run) => {
                    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
                    loop {
                        match run.poll(&mut cx, None, &mut |_, _, _| Answer::Unknown) {
                            std::task::Poll::Ready(Err(why)) => break why,
                            std::task::Poll::Ready(Ok(_)) => break "Lua action 'a': ended".to_owned(),
                            std::task::Poll::Pending => {}
                        }
                    }
                }
            };
            assert!(why.starts_with("Lua action 'a': ") && why.contains(expected), "{text}: {why}");
        }
        machine.with(|lua| lua.gc_collect()).expect("collected");
        assert_eq!(evaluate(&machine, "return 1 + 1").as_deref(), Ok("2"), "{text}");
    }
}

/// A function that yields before every instruction gives the same results: with the values between two related
/// instructions, and with its local variables when a metamethod is called.
#[test]
fn forced_pauses_change_nothing() {
    const THREE: &str = "local function three(...) return 1, 2, 3, ... end ";
    let rows = [
        ("local function sum(a, b, c) return a + b + c end return sum(three())", "6"),
        ("local function all(...) return select('#', ...) end return all(three(4, 5))", "5"),
        ("return #{three(4)}", "4"),
        ("return (three())", "1"),
        ("return select(3, three())", "3"),
        ("return string.format('%d-%d-%d', three())", "1-2-3"),
        (
            "local t = setmetatable({}, {__index = function(_, key) return key .. '!' end}) local a, b = 1, 2 \
          return t.x .. a .. t.y .. b",
            "x!1y!2",
        ),
        (
            "local t = setmetatable({}, {__concat = function(a, b) return 'c' end}) local a = 5 return (t .. 'x') .. a",
            "c5",
        ),
        ("local t = setmetatable({}, {__add = function(a, b) return b end}) local a = 5 return t + 2 + a", "7"),
        ("local t = setmetatable({}, {__call = function(_, ...) return select('#', ...) end}) return t(three())", "3"),
        ("local sum = 0 for i = 1, 20 do sum = sum + select(2, three(i)) end return sum", "40"),
        ("local sum = 0 for _, v in ipairs({three(4)}) do sum = sum + v end return sum", "10"),
        ("local a, b = pcall(function(...) return select('#', ...) end, three()) return b", "3"),
        (
            "local co = coroutine.wrap(function(...) coroutine.yield(select('#', ...)) return 'end' end) \
          return co(three()) .. co()",
            "3end",
        ),
    ];
    let machine = machine(" tune.lua.forced-yield 1");
    for (text, expected) in rows {
        let text = format!("{THREE}{text}");
        let function = machine.with(|lua| lua.load(&text).into_function().expect("a script"));
        let terms = RunTerms { what: "action 'a'".into(), limit: None, yields: true };
        let mut run = Run::new(&machine, function, Vec::new(), terms).expect("a run");
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let mut pauses = 0;
        let values = loop {
            match run.poll(&mut cx, None, &mut |_, _, _| Answer::Unknown) {
                std::task::Poll::Ready(values) => break values.unwrap_or_else(|why| panic!("{text}: {why}")),
                std::task::Poll::Pending => pauses += 1,
            }
        };
        let value = values.front().cloned().unwrap_or(Value::Nil);
        assert_eq!(value.to_string().as_deref().ok(), Some(expected), "{text}");
        assert!(pauses > 4, "{text}: {pauses} pauses");
    }
}

/// The functions of the table library work on long lists as on short ones.
#[test]
fn long_lists_are_changed_as_short_ones() {
    let machine = machine(" tune.lua.maxmem 64");
    let rows = [
        (
            "local t = {} for i = 1, n do t[i] = i end table.move(t, 1, n, 2) return t[1] .. t[2] .. t[3] .. t[n + 1] - n",
            "1120",
        ),
        ("local t = {} for i = 1, n do t[i] = i end table.move(t, 3, n, 1) return t[1] .. t[2] .. t[n - 2] - n", "340"),
        (
            "local t = {} for i = 1, n do t[i] = i end local u = table.move(t, 1, n, 5, {}) return u[5] .. u[n + 4] - n .. #t - n",
            "100",
        ),
        ("local t = {} for i = 1, n do t[i] = i % 10 end return #table.concat(t, ',') - 2 * n", "-1"),
        ("local t = {} for i = 1, n do t[i] = i % 10 end return #table.concat(t, ', ', 2, n - 1) - 3 * n", "-8"),
        (
            "local t = {} for i = 1, n do t[i] = i end table.insert(t, 2, 'x') return t[1] .. t[2] .. t[3] .. t[n + 1] - n",
            "1x20",
        ),
        (
            "local t = {} for i = 1, n do t[i] = i end return table.remove(t, 2) .. t[1] .. t[2] .. t[n - 1] - n .. #t - n",
            "2130-1",
        ),
        ("local t = {} for i = 1, n do t[i] = n - i end table.sort(t) return t[1] .. t[2] .. t[n] - n", "01-1"),
        (
            "local ok, why = pcall(table.insert, {}, 5, 1) return why",
            "bad argument #2 to 'insert' (position out of bounds)",
        ),
        ("local ok, why = pcall(setmetatable, 1, {}) return tostring(ok)", "false"),
    ];
    for n in [20, 9_999, 10_000, 10_001, 35_000] {
        for (text, expected) in rows {
            let found = evaluate(&machine, &format!("local n = {n} {text}"));
            assert_eq!(found.as_deref(), Ok(expected), "{n}: {text}");
        }
    }
}
