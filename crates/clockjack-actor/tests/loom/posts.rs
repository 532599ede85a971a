//! Posts: nodes that are hung up again while the runner is at them.
#![expect(unsafe_code, reason = "hangs nodes on a lane by their addresses")]

use alloc::{sync::Arc, vec::Vec};
use core::ptr::NonNull;

use loom::thread;

use super::lane::{Lane, Nodes, Post, Sent};

/// A lane, and two posts with a number each that is added to.
struct Scene {
    lane: Lane,
    posts: [Post<u32>; 2],
}

impl Scene {
    fn new() -> Arc<Self> {
        Arc::new(Self { lane: Lane::new(), posts: [Post::new(0), Post::new(1)] })
    }

    fn send(&self, index: usize, n: u32) -> Sent<u32> {
        let post = NonNull::from(&self.posts[index]);
        // SAFETY: the scene outlives all that hangs on its lane, which has only such posts.
        unsafe { Post::send(post, &self.lane, |sum| *sum += n) }
    }

    /// What is found, by the kinds of the posts.
    fn empty(mut nodes: Nodes) -> [u32; 2] {
        let mut sums = [0; 2];
        while let Some((node, kind)) = nodes.pop() {
            // SAFETY: it was popped off the lane, which has only such posts.
            sums[usize::from(kind)] += unsafe { Post::<u32>::empty(node) };
        }
        sums
    }
}

fn plus(one: [u32; 2], other: [u32; 2]) -> [u32; 2] {
    [one[0] + other[0], one[1] + other[1]]
}

#[test]
fn a_post_that_is_hung_up_again_loses_nothing_and_nothing_comes_twice() {
    loom::model(|| {
        let scene = Scene::new();
        assert_eq!(scene.send(0, 1), Sent::Hung);
        let sender = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || {
                assert_ne!(scene.send(1, 10), Sent::Refused(10));
                assert_ne!(scene.send(0, 100), Sent::Refused(100));
            })
        };
        let runner = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || {
                let first = Scene::empty(scene.lane.take());
                plus(first, Scene::empty(scene.lane.take()))
            })
        };
        sender.join().unwrap();
        let found = plus(runner.join().unwrap(), Scene::empty(scene.lane.take()));
        assert_eq!(found, [101, 10]);
        Scene::empty(scene.lane.close());
    });
}

#[test]
fn two_senders_have_their_posts_in_one_list() {
    loom::model(|| {
        let scene = Scene::new();
        let senders: Vec<_> = (0..2)
            .map(|index| {
                let scene = Arc::clone(&scene);
                thread::spawn(move || {
                    let once = scene.send(index, 1);
                    assert_eq!(once, Sent::Hung);
                })
            })
            .collect();
        let early = Scene::empty(scene.lane.take());
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        assert_eq!(plus(early, Scene::empty(scene.lane.close())), [1, 1]);
    });
}

#[test]
fn what_a_closing_lane_refuses_comes_back_and_is_not_found() {
    loom::model(|| {
        let scene = Scene::new();
        let sender = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || {
                let mut back = 0;
                for n in [1, 10] {
                    if let Sent::Refused(load) = scene.send(0, n) {
                        back += load;
                    }
                }
                back
            })
        };
        let runner = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || Scene::empty(scene.lane.close())[0])
        };
        let back = sender.join().unwrap();
        assert_eq!(back + runner.join().unwrap(), 11);
        assert_eq!(scene.send(1, 5), Sent::Refused(5));
    });
}
