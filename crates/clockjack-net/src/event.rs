//! Events of the net, for subscribers.

use alloc::string::String;

use crate::{Member, NodeId};

/// Something that happened on the net, as this node sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetEvent {
    /// This node has become a member.
    Joined(NodeId),
    /// This node has read the end of its own membership. Its remote proxies stop, its local actors
    /// continue, and it joins again as another incarnation.
    Lost(NodeId),
    /// Another node has become a member.
    MemberUp(Member),
    /// Another node is lost, or has left.
    MemberDown(Member),
    /// Messages of one channel were lost on their way to this node.
    Gap {
        /// The node that sent them.
        from: NodeId,
        /// How many.
        n: u64,
    },
    /// Messages for a node wait, because its actors have not taken
    /// [`LINK_WINDOW`](crate::LINK_WINDOW) bytes for a second. The mailboxes of remote proxies fill
    /// meanwhile, and then `tell` is refused as full.
    Blocked {
        /// The node that the messages are for.
        to: NodeId,
    },
    /// The actors of a node have taken enough: messages for it are sent again.
    Unblocked {
        /// The node that the messages are for.
        to: NodeId,
    },
    /// A node has broken the rules of the protocol repeatedly; its frames are ignored for a minute.
    Muted(NodeId),
    /// The connection to the server is lost. Messages to other nodes wait in their windows, and the
    /// lease of this node runs.
    Suspended,
    /// The server is reached again, and the log is read again.
    Resumed,
    /// The server refuses something that this node must do: a permission is missing, or its
    /// credentials are not valid any more. The node may lose its lease, or not become a member.
    Refused {
        /// What is refused, in the words of the server. It names no payload.
        what: String,
    },
    /// This node has dropped packs of frames, or writes to the log, because a queue between it and
    /// the server was full. The receivers count the messages that were in the packs.
    Dropped {
        /// How many packs and writes.
        n: u64,
    },
}
