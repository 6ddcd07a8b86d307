//! `CLIENT TRACKING` and what belongs to it: clients that keep what they read are told when it becomes invalid.

use std::sync::atomic::Ordering;

use super::CONNECTION;
use crate::commands::{Command, Context, Failure};
use crate::tracking::{Mode, Reading, overlap};

pub(super) const CACHING: Command = Command {
    name: "caching",
    arity: 3,
    since: "6.0.0",
    summary: "Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes",
    syntax: "(YES|NO)",
    handler: caching,
    ..CONNECTION
};

pub(super) const GETREDIR: Command = Command {
    name: "getredir",
    arity: 2,
    since: "6.0.0",
    summary: "Return the client ID we are redirecting to when tracking is enabled",
    handler: get_redirection,
    ..CONNECTION
};

pub(super) const TRACKING: Command = Command {
    name: "tracking",
    arity: -3,
    since: "6.0.0",
    complexity: "O(1), or O(n) in the number of prefixes",
    summary: "Control server assisted client side caching",
    syntax: "(ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]] [OPTIN] [OPTOUT] [NOLOOP]",
    handler: tracking,
    ..CONNECTION
};

pub(super) const TRACKINGINFO: Command = Command {
    name: "trackinginfo",
    arity: 2,
    since: "6.2.0",
    summary: "Report tracking status for the current connection",
    handler: tracking_info,
    ..CONNECTION
};

fn caching(context: &mut Context<'_>) -> Result<(), Failure> {
    let is_yes = context.is_word(2, "yes");
    let is_no = context.is_word(2, "no");
    let Some(reading) = &mut context.session.tracking else {
        return Err(Failure::Fixed(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode \
             enabled",
        ));
    };
    match reading.mode {
        Mode::OptIn if is_yes => reading.is_caching_given = true,
        Mode::OptOut if is_no => reading.is_caching_given = true,
        _ if is_yes => {
            return Err(Failure::Fixed(
                "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
            ));
        }
        _ if is_no => {
            return Err(Failure::Fixed(
                "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
            ));
        }
        _ => return Err(Failure::SYNTAX),
    }
    context.reply.ok();
    Ok(())
}

fn get_redirection(context: &mut Context<'_>) -> Result<(), Failure> {
    context.reply.integer(redirection(context.session.tracking.as_ref()));
    Ok(())
}

fn redirection(reading: Option<&Reading>) -> i64 {
    reading.map_or(-1, |reading| reading.redirection.unwrap_or(0) as i64)
}

/// What a client asks for, independent of what is on now.
#[derive(Default)]
struct Options {
    redirection: Option<u64>,
    is_broadcast: bool,
    is_opt_in: bool,
    is_opt_out: bool,
    is_no_loop: bool,
    prefixes: Vec<Box<[u8]>>,
}

impl Options {
    fn parse(context: &Context<'_>) -> Result<Self, Failure> {
        let mut options = Self::default();
        let mut at = 3;
        while at < context.arguments.len() {
            let value = context.arguments.get(at + 1);
            if context.is_word(at, "bcast") {
                options.is_broadcast = true;
            } else if context.is_word(at, "optin") {
                options.is_opt_in = true;
            } else if context.is_word(at, "optout") {
                options.is_opt_out = true;
            } else if context.is_word(at, "noloop") {
                options.is_no_loop = true;
            } else if context.is_word(at, "redirect") && value.is_some() {
                at += 1;
                if options.redirection.is_some() {
                    return Err(Failure::Fixed("ERR A client can only redirect to a single other client"));
                }
                let id = u64::try_from(context.integer(at)?).unwrap_or(0);
                if context.shared.connected.get(id).is_none() {
                    let text = "ERR The client ID you want redirect to does not exist";
                    return Err(Failure::Fixed(text));
                }
                options.redirection = Some(id);
            } else if let Some(prefix) = value.filter(|_| context.is_word(at, "prefix")) {
                at += 1;
                options.prefixes.push(prefix.into());
            } else {
                return Err(Failure::SYNTAX);
            }
            at += 1;
        }
        Ok(options)
    }

    /// Checks the options with each other and with what is on.
    fn reading(mut self, now: Option<&Reading>) -> Result<Reading, Failure> {
        let mode = match (self.is_broadcast, self.is_opt_in, self.is_opt_out) {
            (false, ..) if !self.prefixes.is_empty() => {
                return Err(Failure::Fixed("ERR PREFIX option requires BCAST mode to be enabled"));
            }
            (is_broadcast, ..) if now.is_some_and(|now| (now.mode == Mode::Broadcast) != is_broadcast) => {
                return Err(Failure::Fixed(
                    "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then \
                     re-enabling it with a different mode.",
                ));
            }
            (true, false, false) => Mode::Broadcast,
            (true, ..) => {
                return Err(Failure::Fixed("ERR OPTIN and OPTOUT are not compatible with BCAST"));
            }
            (_, true, true) => {
                return Err(Failure::Fixed("ERR You can't specify both OPTIN mode and OPTOUT mode"));
            }
            (_, true, _) => Mode::OptIn,
            (_, _, true) => Mode::OptOut,
            _ => Mode::All,
        };
        if matches!(
            (mode, now.map(|now| now.mode)),
            (Mode::OptIn, Some(Mode::OptOut)) | (Mode::OptOut, Some(Mode::OptIn))
        ) {
            return Err(Failure::Fixed(
                "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then \
                 re-enabling it with a different mode.",
            ));
        }
        let before = now.map_or(&[][..], |now| &now.prefixes);
        if mode == Mode::Broadcast {
            self.check_prefixes(before)?;
            if self.prefixes.is_empty() && before.is_empty() {
                self.prefixes.push(Box::default());
            }
        }
        Ok(Reading {
            mode,
            redirection: self.redirection,
            is_no_loop: self.is_no_loop,
            prefixes: before.iter().cloned().chain(self.prefixes).collect(),
            is_caching_given: false,
        })
    }

    fn check_prefixes(&self, before: &[Box<[u8]>]) -> Result<(), Failure> {
        for (position, prefix) in self.prefixes.iter().enumerate() {
            let others = self.prefixes[position + 1..].iter().map(|other| (other, "another provided"));
            let mut all = before.iter().map(|other| (other, "an existing")).chain(others);
            if let Some((other, which)) = all.find(|(other, _)| overlap(prefix, other)) {
                let [prefix, other] = [prefix, other].map(|text| String::from_utf8_lossy(text));
                return Err(Failure::Text(format!(
                    "ERR Prefix '{prefix}' overlaps with {which} prefix '{other}'. Prefixes for a single client must \
                     not overlap."
                )));
            }
        }
        Ok(())
    }
}

fn tracking(context: &mut Context<'_>) -> Result<(), Failure> {
    let options = Options::parse(context)?;
    let (shared, session) = (context.shared, &mut *context.session);
    if context.arguments[2].eq_ignore_ascii_case(b"on") {
        let reading = options.reading(session.tracking.as_ref())?;
        if let Some(other) = reading.redirection.and_then(|id| shared.connected.get(id)) {
            other.takes_invalidations.store(true, Ordering::Relaxed);
        }
        if let Some(address) = session.address.clone() {
            shared.tracking.enable(address, &reading, &shared.observers);
            session.tracking = Some(reading);
        }
    } else if context.arguments[2].eq_ignore_ascii_case(b"off") {
        if let Some(reading) = session.tracking.take() {
            shared.tracking.disable(session.id, &reading, &shared.observers);
        }
    } else {
        return Err(Failure::SYNTAX);
    }
    context.reply.ok();
    Ok(())
}

fn tracking_info(context: &mut Context<'_>) -> Result<(), Failure> {
    let reading = context.session.tracking.as_ref();
    let mut flags = vec![if reading.is_some() { "on" } else { "off" }];
    if let Some(reading) = reading {
        let (mode, caching) = match reading.mode {
            Mode::All => (None, None),
            Mode::OptIn => (Some("optin"), Some("caching-yes")),
            Mode::OptOut => (Some("optout"), Some("caching-no")),
            Mode::Broadcast => (Some("bcast"), None),
        };
        flags.extend(mode);
        flags.extend(caching.filter(|_| reading.is_caching_given));
        flags.extend(reading.is_no_loop.then_some("noloop"));
        let has_lost = context.shared.tracking.has_lost_redirection(context.session.id);
        flags.extend(has_lost.then_some("broken_redirect"));
    }
    let reply = &mut context.reply;
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"redirect");
    reply.integer(redirection(reading));
    reply.bulk(b"prefixes");
    let prefixes = reading.map_or(&[][..], |reading| &reading.prefixes);
    reply.array(prefixes.len());
    prefixes.iter().for_each(|prefix| reply.bulk(prefix));
    Ok(())
}
