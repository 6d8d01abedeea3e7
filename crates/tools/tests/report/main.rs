//! The report of the benchmark from outside: its drawings as XML, hostile and odd results, the command that draws it
//! anew, and what a browser without a network shows. Must never judge a figure: those are made up.

mod browser;
mod command;
mod fixture;
mod structure;
