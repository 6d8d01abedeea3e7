//! The tree of a table's hosts and path elements. A lookup costs one hash for each element of a path that the tree has.
//! Must never read a request.

use super::super::{Key, PatternIndex};
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hasher};

/// The index of a node.
pub type NodeIndex = u32;

/// The parents of hosts: hosts that are written whole, suffixes of hosts, all hosts.
pub const WHOLE: NodeIndex = NodeIndex::MAX;
pub const BELOW: NodeIndex = NodeIndex::MAX - 1;
pub const ANY: NodeIndex = NodeIndex::MAX - 2;

/// A host, or an element of a path below one.
#[derive(Debug, Clone, Default)]
pub struct Node {
    parent: NodeIndex,
    element: Box<[u8]>,
    /// The number of nodes below it.
    children: u32,
    /// The entries whose path ends here, by precedence.
    pub exact: Vec<PatternIndex>,
    /// The entries whose prefix ends here, by precedence.
    pub prefixes: Vec<PatternIndex>,
    /// The entries of a host that have regular expressions, by precedence.
    pub regexes: Vec<PatternIndex>,
}

impl Node {
    fn is_unused(&self) -> bool {
        self.children == 0 && self.exact.is_empty() && self.prefixes.is_empty() && self.regexes.is_empty()
    }
}

/// The nodes of a table.
#[derive(Debug, Clone)]
pub struct Nodes {
    key: Key,
    all: Vec<Node>,
    /// Nodes that are not used.
    free: Vec<NodeIndex>,
    /// Nodes by parent and element.
    index: HashTable<NodeIndex>,
}

impl Nodes {
    pub fn new(key: Key) -> Self {
        Self { key, all: Vec::new(), free: Vec::new(), index: HashTable::new() }
    }

    pub fn get(&self, at: NodeIndex) -> Option<&Node> {
        self.all.get(at as usize)
    }

    pub fn get_mut(&mut self, at: NodeIndex) -> Option<&mut Node> {
        self.all.get_mut(at as usize)
    }

    /// Returns the node above; `None`: it is a host.
    pub fn above(&self, at: NodeIndex) -> Option<NodeIndex> {
        self.get(at).map(|node| node.parent).filter(|parent| *parent < ANY)
    }

    /// Returns the node of an element below another one.
    pub fn child(&self, parent: NodeIndex, element: &[u8]) -> Option<NodeIndex> {
        let is_it =
            |at: &NodeIndex| self.get(*at).is_some_and(|node| node.parent == parent && *node.element == *element);
        self.index.find(hash(self.key, parent, element), is_it).copied()
    }

    /// Returns the node of an element below another one, which is added if there is none.
    pub fn grow(&mut self, parent: NodeIndex, element: &[u8]) -> NodeIndex {
        if let Some(known) = self.child(parent, element) {
            return known;
        }
        let node = Node { parent, element: element.into(), ..Node::default() };
        let at = match self.free.pop() {
            Some(at) => {
                self.all[at as usize] = node;
                at
            }
            None => {
                self.all.push(node);
                (self.all.len() - 1) as NodeIndex
            }
        };
        let Self { key, all, index, .. } = self;
        let hash_of = |at: &NodeIndex| all.get(*at as usize).map_or(0, |node| hash(*key, node.parent, &node.element));
        index.insert_unique(hash(*key, parent, element), at, hash_of);
        if let Some(above) = self.get_mut(parent) {
            above.children += 1;
        }
        at
    }

    /// Removes a node and those above it that are no longer used.
    pub fn prune(&mut self, at: NodeIndex) {
        let mut next = Some(at);
        while let Some(at) = next.take()
            && let Some(node) = self.all.get(at as usize).filter(|node| node.is_unused())
        {
            let parent = node.parent;
            let hash = hash(self.key, parent, &node.element);
            if let Ok(found) = self.index.find_entry(hash, |known| *known == at) {
                found.remove();
                self.all[at as usize] = Node::default();
                self.free.push(at);
                if let Some(above) = self.get_mut(parent) {
                    above.children -= 1;
                    next = Some(parent);
                }
            }
        }
    }

    /// The number of nodes in use.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.index.len()
    }
}

fn hash(key: Key, parent: NodeIndex, element: &[u8]) -> u64 {
    let mut hasher = key.build_hasher();
    hasher.write_u32(parent);
    hasher.write(element);
    hasher.finish()
}
