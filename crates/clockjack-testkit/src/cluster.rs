//! [`TestCluster`]: several nodes on one clock, in virtual time.

use core::{fmt, time::Duration};
use std::rc::Rc;

use clockjack_actor::ActorSystem;
use clockjack_net::{MemoryServer, Net, NetConfig};

use crate::ManualTime;

/// A cluster of actor systems on the thread of the test, with one clock that only the test
/// advances, and with a server in memory. An hour of cluster time takes a moment.
///
/// Each [node](Self::node) is a [`ManualTime`], with its actors and probes. Whatever lets one node
/// run, or lets time pass, does so for all of them.
///
/// # Examples
///
/// ```
/// use clockjack_actor::Props;
/// use clockjack_macros::Wire;
/// use clockjack_testkit::TestCluster;
/// use core::time::Duration;
///
/// #[derive(Debug, PartialEq, Wire)]
/// #[wire(id = "demo.Hello")]
/// struct Hello(String);
///
/// let cluster = TestCluster::start(2);
/// let out = cluster.node(0).probe::<Hello>();
/// let address = cluster.net(0).export("out", &out.actor_ref())?;
///
/// let remote = cluster.net(1).actor(&address)?;
/// remote.tell(Hello("from another node".into()))?;
/// out.expect_eq(Hello("from another node".into()));
///
/// cluster.crash(0);
/// cluster.advance(Duration::from_secs(5));
/// assert!(remote.is_stopped());
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
///
/// # Drop
///
/// Shuts the nodes down, one by one, as [`ManualTime`] does.
pub struct TestCluster {
    nodes: Vec<ManualTime>,
    nets: Vec<Net>,
    server: MemoryServer,
}

impl TestCluster {
    /// Starts nodes named `node-0` and so on, and runs them until all are members.
    ///
    /// # Panics
    ///
    /// If a node does not start, or is no member.
    #[must_use]
    pub fn start(nodes: usize) -> Self {
        Self::with_seed(nodes, 0)
    }

    /// As [`start`](Self::start); the seed decides which of the ready actors of a node runs next,
    /// and the numbers of the incarnations.
    ///
    /// # Panics
    ///
    /// As there.
    #[must_use]
    pub fn with_seed(nodes: usize, seed: u64) -> Self {
        let server = MemoryServer::new();
        let start = |at: usize| ManualTime::start_seeded(ActorSystem::builder(&name(at)), seed);
        let nodes: Vec<ManualTime> = (0..nodes).map(start).collect();
        share_time(&nodes);
        let join = |(at, node): (usize, &ManualTime)| {
            let seed = seed.wrapping_mul(1_000).wrapping_add(at as u64);
            let config = NetConfig { seed, ..NetConfig::new(&name(at)) };
            let net = Net::join_memory(node.system(), &server, config);
            net.unwrap_or_else(|error| panic!("TestCluster: {} does not join: {error}", name(at)))
        };
        let nets: Vec<Net> = nodes.iter().enumerate().map(join).collect();
        let this = Self { nodes, nets, server };
        this.settle();
        for net in &this.nets {
            let n_members = net.members().members.len();
            assert_eq!(n_members, this.nets.len(), "TestCluster: members of {:?}", net.me());
        }
        this
    }

    /// The system of a node, with its actors and probes.
    #[must_use]
    pub fn node(&self, at: usize) -> &ManualTime {
        &self.nodes[at]
    }

    /// The net of a node.
    #[must_use]
    pub fn net(&self, at: usize) -> &Net {
        &self.nets[at]
    }

    /// The server of the cluster.
    #[must_use]
    pub fn server(&self) -> &MemoryServer {
        &self.server
    }

    /// Runs until no actor of any node has anything to do now; no time passes.
    ///
    /// # Panics
    ///
    /// As [`ManualTime::settle`].
    pub fn settle(&self) {
        if let Some(node) = self.nodes.first() {
            node.settle();
        }
    }

    /// Lets time pass, on all nodes.
    ///
    /// # Panics
    ///
    /// As [`ManualTime::advance`].
    pub fn advance(&self, by: Duration) {
        if let Some(node) = self.nodes.first() {
            node.advance(by);
        }
    }

    /// Runs all nodes until a future completes; time passes when nothing else can run.
    ///
    /// # Panics
    ///
    /// As [`ManualTime::block_on`].
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.nodes.first().expect("the cluster has a node").block_on(future)
    }

    /// The time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.nodes.first().map_or(Duration::ZERO, ManualTime::elapsed)
    }

    /// Kills a node, as `kill -9` does: it does not run any more and sends nothing. The other nodes
    /// notice after 3 to 5 seconds, because its socket is closed.
    pub fn crash(&self, at: usize) {
        self.server.cut(self.nets[at].me().incarnation());
        set_frozen(&self.nodes[at], true);
    }

    /// Freezes a node, as `SIGSTOP` does: it does not run until it is [thawed](Self::thaw). The
    /// other nodes notice when its lease has ended, after 15 seconds.
    pub fn freeze(&self, at: usize) {
        set_frozen(&self.nodes[at], true);
    }

    /// Lets a frozen node run again.
    pub fn thaw(&self, at: usize) {
        set_frozen(&self.nodes[at], false);
    }

    /// Loses all frames between two nodes, in both directions. Both remain members, because both
    /// reach the server.
    pub fn partition(&self, a: usize, b: usize) {
        self.set_blocked(a, b, true);
    }

    /// Lets frames between two nodes pass again.
    pub fn heal(&self, a: usize, b: usize) {
        self.set_blocked(a, b, false);
    }

    /// Cuts a node off from the server and so from all other nodes, as if its cable was unplugged.
    /// It runs on, and knows it: [`NetEvent::Suspended`](clockjack_net::NetEvent::Suspended). The
    /// others notice when its lease has ended, after 15 seconds.
    pub fn disconnect(&self, at: usize) {
        self.server.set_offline(self.nets[at].me().incarnation(), true);
    }

    /// Lets a disconnected node reach the server again. If its lease has ended meanwhile, it joins
    /// as another incarnation.
    pub fn reconnect(&self, at: usize) {
        self.server.set_offline(self.nets[at].me().incarnation(), false);
    }

    fn set_blocked(&self, a: usize, b: usize, is_blocked: bool) {
        let [a, b] = [a, b].map(|at| self.nets[at].me().incarnation());
        self.server.set_blocked(a, b, is_blocked);
    }
}

/// Lets these systems run together, on one time. Their times are equal.
fn share_time(systems: &[ManualTime]) {
    let group: Vec<_> = systems.iter().map(|system| Rc::downgrade(system.inner())).collect();
    for system in systems {
        system.inner().group.borrow_mut().clone_from(&group);
    }
}

fn set_frozen(system: &ManualTime, is_frozen: bool) {
    system.inner().is_frozen.set(is_frozen);
}

fn name(at: usize) -> String {
    format!("node-{at}")
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        // Each node shuts down alone, also one that was killed or frozen.
        for node in &self.nodes {
            node.inner().group.borrow_mut().clear();
            set_frozen(node, false);
        }
    }
}

impl fmt::Debug for TestCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestCluster")
            .field("nodes", &self.nodes.len())
            .field("elapsed", &self.elapsed())
            .finish_non_exhaustive()
    }
}
