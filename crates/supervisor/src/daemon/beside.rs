//! What goes on beside the loop: questions to the prover, its notifications, commands of the operator's, signs of life.
//!
//! Each works in a task of its own or waits for a descriptor; the loop hears what came of it as one [`News`] at a time, and
//! breaking off the wait loses nothing.

use std::io;

use sexton_diagnosis::progress::Change;

use super::hooks::{Failure, Hooks};
use super::notify::{Notice, Notifications};
use super::probe::{self, Probe};
use super::quiesce::{Ended, Quiescing, Unquiescing};
use super::service_manager::ServiceManager;
use super::side_command::SideChildren;
use super::watchdog::{Heartbeats, Watchdog};
use crate::config::Config;
use crate::config::settings::hooks;
use crate::place::Place;

/// Everything beside the loop.
#[derive(Debug)]
pub(super) struct Beside {
    /// Present while the prover starts and is to say that it is ready.
    pub(super) probe: Option<Probe>,
    /// Present while it is ready and has a status page.
    pub(super) watchdog: Option<Watchdog>,
    pub(super) heartbeats: Heartbeats,
    /// Absent where the socket could not be made, or broke.
    pub(super) notifications: Option<Notifications>,
    pub(super) quiescing: Option<Quiescing>,
    pub(super) unquiescing: Option<Unquiescing>,
    pub(super) hooks: Hooks,
    pub(super) manager: ServiceManager,
    /// Children of ours beside the keeper.
    pub(super) children: SideChildren,
}

/// One piece of news.
#[derive(Debug)]
pub(super) enum News {
    Ready,
    ReadinessOverdue(String),
    Progress(Change),
    HeartbeatLost(String),
    Notice(Notice),
    NotificationsBroke(io::Error),
    Quiesced(Ended),
    Unquiesced(Result<(), String>),
    HookFailed(Failure),
    /// The service manager was told that we live.
    Beat,
}

impl Beside {
    /// To be called inside the runtime.
    pub(super) fn new(config: &Config, place: &Place) -> Self {
        let children = SideChildren::default();
        Self {
            probe: None,
            watchdog: None,
            heartbeats: Heartbeats::default(),
            notifications: None,
            quiescing: None,
            unquiescing: None,
            hooks: Hooks::new(hooks(config), place, children.clone()),
            manager: ServiceManager::from_environment(),
            children,
        }
    }

    /// What was followed of a run that is over.
    pub(super) fn forget_run(&mut self) {
        self.probe = None;
        self.watchdog = None;
        self.heartbeats = Heartbeats::default();
        self.quiescing = None;
        self.unquiescing = None;
        if let Some(notifications) = &mut self.notifications {
            notifications.forget();
        }
    }

    /// The next. `roots`: processes whose trees are the run's, see [`Notifications::next`]. Cancel-safe.
    pub(super) async fn next(&mut self, roots: &[i32]) -> News {
        let Self {
            probe, watchdog, heartbeats, notifications, quiescing, unquiescing, hooks, manager, ..
        } = self;
        tokio::select! {
            news = or_never(probe, Probe::next) => match news {
                probe::News::Ready => News::Ready,
                probe::News::Overdue { why } => News::ReadinessOverdue(why),
            },
            change = or_never(watchdog, Watchdog::next) => News::Progress(change),
            why = heartbeats.lost() => News::HeartbeatLost(why),
            notice = async {
                match notifications {
                    Some(notifications) => notifications.next(roots).await,
                    None => std::future::pending().await,
                }
            } => notice.map_or_else(News::NotificationsBroke, News::Notice),
            ended = or_never(quiescing, Quiescing::next) => News::Quiesced(ended),
            ended = or_never(unquiescing, Unquiescing::next) => News::Unquiesced(ended),
            failure = hooks.next() => News::HookFailed(failure),
            () = manager.beat() => News::Beat,
        }
    }
}

/// Waits for what `next` says of `part`; for ever where there is none.
async fn or_never<'a, T, N>(part: &'a mut Option<T>, next: impl AsyncFnOnce(&'a mut T) -> N) -> N {
    match part {
        Some(part) => next(part).await,
        None => std::future::pending().await,
    }
}
