//! Reusable nodes that are pushed again while the runner takes them.
#![expect(unsafe_code, reason = "pushes nodes on a stack by their addresses")]

use alloc::sync::Arc;
use core::ptr::NonNull;

use clockjack_sync::stack::Drained;
use loom::thread;

use crate::reusable_node::{NodePtr, NodePush, NodeStack, ReusableNode};

/// A stack, and two nodes with a number each, to which is added.
struct Scene {
    stack: NodeStack,
    nodes: [ReusableNode<u32>; 2],
}

// SAFETY: the nodes are `Sync`, and the stack passes each to one thread at a time.
unsafe impl Send for Scene {}
// SAFETY: as above.
unsafe impl Sync for Scene {}

impl Scene {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            stack: NodeStack::new(),
            nodes: [ReusableNode::new(0), ReusableNode::new(1)],
        })
    }

    fn send(&self, index: usize, n: u32) -> NodePush<u32> {
        let node = NonNull::from(&self.nodes[index]);
        // SAFETY: the scene outlives all nodes on its stack, which has only such nodes.
        unsafe { ReusableNode::send(node, &self.stack, |sum| *sum += n) }
    }

    /// What is found, by the kinds of the nodes.
    fn empty(nodes: Drained<NodePtr>) -> [u32; 2] {
        let mut sums = [0; 2];
        for node in nodes {
            let kind = node.kind();
            // SAFETY: it was drained off the stack, which has only such nodes.
            sums[usize::from(kind)] += unsafe { ReusableNode::<u32>::take(node) };
        }
        sums
    }
}

fn plus(one: [u32; 2], other: [u32; 2]) -> [u32; 2] {
    [one[0] + other[0], one[1] + other[1]]
}

#[test]
fn a_node_that_is_pushed_again_loses_nothing_and_nothing_comes_twice() {
    loom::model(|| {
        let scene = Scene::new();
        assert_eq!(scene.send(0, 1), NodePush::Linked);
        let sender = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || {
                assert_ne!(scene.send(1, 10), NodePush::Refused(10));
                assert_ne!(scene.send(0, 100), NodePush::Refused(100));
            })
        };
        let runner = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || {
                let first = Scene::empty(scene.stack.drain());
                plus(first, Scene::empty(scene.stack.drain()))
            })
        };
        sender.join().unwrap();
        let found = plus(runner.join().unwrap(), Scene::empty(scene.stack.drain()));
        assert_eq!(found, [101, 10]);
        Scene::empty(scene.stack.close());
    });
}

#[test]
fn what_a_closing_stack_refuses_is_returned_and_is_not_found() {
    loom::model(|| {
        let scene = Scene::new();
        let sender = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || {
                let mut back = 0;
                for n in [1, 10] {
                    if let NodePush::Refused(load) = scene.send(0, n) {
                        back += load;
                    }
                }
                back
            })
        };
        let runner = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || Scene::empty(scene.stack.close())[0])
        };
        let back = sender.join().unwrap();
        assert_eq!(back + runner.join().unwrap(), 11);
        assert_eq!(scene.send(1, 5), NodePush::Refused(5));
    });
}
