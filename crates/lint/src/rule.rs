//! The type of a rule. Must never know one.

use crate::finding::Findings;
use crate::model::Model;

/// A kind of fault.
pub struct Rule {
    /// Its name in the output and in comments; never changed.
    pub name: &'static str,
    /// The fault in one line.
    pub doc: &'static str,
    pub(crate) check: fn(&Model<'_>, &mut Findings),
}
