//! Tests of the benchmark's report: its drawings as XML, hostile and odd results, the command that redraws it,
//! and its rendering in a browser without a network. Must never check a figure: those are made up.

mod browser;
mod command;
mod fixture;
mod structure;
