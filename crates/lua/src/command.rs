//! Runtime API commands registered by scripts. Must never depend on their caller.

use std::sync::Arc;
use std::task::{Context, Poll};

use conn::service::ByteService;
use engine::service::registry::{ScriptCommand, Services};
use mlua::Value;

use crate::prelude::native;
use crate::run::{Run, RunTerms};
use crate::service::Flow;
use crate::stream_handle::ProcessHandle;
use crate::{StateLocation, script_messages};

/// Registers a command.
pub(crate) fn add(services: &Services, name: &str, words: &[String], usage: &str, home: StateLocation) -> bool {
    let short = name.to_owned();
    services.add_command(ScriptCommand {
        words: words.iter().map(|word| word.as_str().into()).collect(),
        usage: usage.into(),
        factory: Arc::new(move |words| {
            let run = match begin(&home, &short, words) {
                Ok(run) => Some(run),
                Err(why) => {
                    script_messages::failed(None, &why);
                    None
                }
            };
            Box::new(Running { run, flow: Flow::default(), lent: ProcessHandle::default() })
        }),
    })
}

fn begin(home: &StateLocation, name: &str, words: &[String]) -> Result<Run, String> {
    let what = format!("cli '<lua.cli.{name}>'");
    let missing = || format!("Lua {what}: not registered in this thread.");
    let machine = home.machine().ok_or_else(missing)?;
    let function = machine.function(&format!("cli.{name}")).ok_or_else(missing)?;
    let arguments = machine.with(|lua| {
        let mut all = vec![native(lua, "applet_tcp")?.call::<Value>(())?];
        for word in words {
            all.push(Value::String(lua.create_string(config::text::to_bytes(word))?));
        }
        Ok(all)
    });
    let arguments = arguments.map_err(|error: mlua::Error| format!("Lua {what}: {error}"))?;
    let terms = RunTerms { what: what.into(), limit: machine.limits.service, yields: true };
    Run::new(&machine, function, arguments, terms)
}

/// A call of a command.
struct Running {
    run: Option<Run>,
    flow: Flow,
    lent: ProcessHandle,
}

impl ByteService for Running {
    fn poll(&mut self, cx: &mut Context<'_>, input: &mut Vec<u8>, ended: bool, output: &mut Vec<u8>) -> Poll<()> {
        let Some(run) = &mut self.run else { return Poll::Ready(()) };
        let flow = &mut self.flow;
        flow.ended = ended;
        std::mem::swap(&mut flow.input, input);
        std::mem::swap(&mut flow.output, output);
        let outcome = run.poll(cx, Some(&self.lent), &mut |cx, name, values| flow.ask(cx, name, values));
        std::mem::swap(&mut flow.input, input);
        std::mem::swap(&mut flow.output, output);
        let Poll::Ready(outcome) = outcome else { return Poll::Pending };
        self.run = None;
        if let Err(why) = outcome {
            script_messages::failed(None, &why);
        }
        Poll::Ready(())
    }
}
