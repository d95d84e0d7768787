//! Handles `CHANNEL_DATA_UPDATE`: the sender's right, the work it costs, merging, and the log from
//! which windows are made.

use bytes::Bytes;
use lagometer_protocol::merge::{MergeContext, MergeError, MergeLimits, Removal};
use lagometer_protocol::{AnyView, ChannelDataUpdate};

use crate::core::budget::Budget;
use crate::core::ids::ConnId;

use super::ChannelManager;
use super::channel::Content;
use super::dispatch::Request;
use super::subscriptions::Subscriptions;
use super::tables::Tables;

/// Why an update changes nothing.
#[derive(Clone, Copy, Debug)]
struct Refusal(&'static str);

/// What is wrong with data that cannot be read or does not fit.
const BAD_DATA: Refusal = Refusal("its data is malformed or too large");

/// What merging an update has led to.
#[derive(Debug)]
struct Merged {
    /// It is the channel's first data.
    is_first: bool,
    removed: Vec<Removal>,
}

impl ChannelManager {
    pub(super) fn data_update(&mut self, request: &Request, bodies: &Bytes, body: &[u8]) {
        let Some(sender) = self.tables.writer(request) else {
            self.tables
                .drop_message(request, "it may not update the channel's data");
            return;
        };
        if !self
            .tables
            .pays(request, self.tables.cost_of(request.channel, body.len()))
        {
            return;
        }
        let Some((data, on_behalf_of)) = parse(body) else {
            self.tables.drop_message(request, "it is no update");
            return;
        };
        if !self.tables.may_read_data(request, &data) {
            return;
        }
        let moved = self.before_update(request, data.value);
        let merged = match self.merge_update(request, &data) {
            Ok(merged) => merged,
            Err(Refusal(why)) => {
                self.tables.drop_message(request, why);
                return;
            }
        };
        if merged.is_first {
            Subscriptions::data_has_come(&mut self.tables, request.now, request.channel);
        }
        Subscriptions::spread(&mut self.tables, request, sender, bodies, data.value);
        self.after_update(request, on_behalf_of, moved, &merged.removed);
        self.weigh_orphan(request.channel);
    }

    /// Merges an update into the channel's data, or makes it the data where there
    /// is none yet.
    fn merge_update(&mut self, request: &Request, update: &AnyView<'_>) -> Result<Merged, Refusal> {
        let now_unix_ms = self.tables.unix_ms(request.now);
        let allowed_bytes = self.tables.budgets_of(request).shared_data_bytes;
        let is_server = self.tables.is_server(request.from);
        let Some(channel) = self.tables.channels.get_mut(request.channel) else {
            return Err(Refusal("there is no such channel"));
        };
        let Some(data) = &mut channel.data else {
            return Err(Refusal("the channel has no data: nobody has created it"));
        };
        let is_its_own = is_server || channel.maker == Some(request.from);
        let decides = is_its_own || channel.owner == Some(request.from);
        let content = data.content.as_mut().filter(|content| {
            !(decides && content.is_provisional && !content.is_of_type(update.type_url))
        });
        let Some(content) = content else {
            return self.begin_with_update(request, update, decides);
        };
        if !content.is_of_type(update.type_url) {
            return Err(Refusal("its data is of another type than the channel's"));
        }
        content.is_provisional &= !decides;
        let merging = MergeContext {
            options: data.options,
            now_unix_ms,
        };
        // What a client makes is limited as a whole.
        let limits = match channel.maker {
            Some(_) => MergeLimits::NONE,
            None => MergeLimits {
                max_encoded_bytes: allowed_bytes,
            },
        };
        // Data of an unknown type only ever grows by merging. Its server's, or maker's,
        // begins afresh where it is full; of others what its server has put there stays,
        // and subscribers receive it.
        let is_unknown = content.state.data_type().is_none();
        let merged = match content.state.merge_within(update.value, &merging, limits) {
            Err(MergeError::TooLarge { .. }) if is_unknown && is_its_own => {
                content.state.load(update.value).map(|()| Vec::new())
            }
            merged => merged,
        };
        let work = content.state.take_work();
        if merged.is_ok() {
            content.changed();
        }
        self.tables.worked(request, work as u64);
        let removed = match merged {
            Ok(removed) => removed,
            Err(MergeError::TooLarge { .. }) => {
                self.tables.over_budget(request, Budget::Data);
                if !is_unknown || is_its_own {
                    return Err(BAD_DATA);
                }
                Vec::new()
            }
            Err(_) => return Err(BAD_DATA),
        };
        Ok(Merged {
            is_first: false,
            removed,
        })
    }

    /// Makes an update the channel's data: where there is none, or one that a client
    /// brought and who sends this may replace.
    fn begin_with_update(
        &mut self,
        request: &Request,
        update: &AnyView<'_>,
        decides: bool,
    ) -> Result<Merged, Refusal> {
        let allowed_bytes = self.tables.budgets_of(request).shared_data_bytes;
        let Some(channel) = self.tables.channels.get_mut(request.channel) else {
            return Err(BAD_DATA);
        };
        if channel.maker.is_none() && update.value.len() > allowed_bytes {
            self.tables.over_budget(request, Budget::Data);
            return Err(BAD_DATA);
        }
        let limits = MergeLimits {
            max_encoded_bytes: channel.max_data_bytes,
        };
        let mut content =
            Content::load(update, &self.tables.settings.schema, limits).ok_or(BAD_DATA)?;
        content.is_provisional = !decides;
        if let Some(data) = &mut channel.data
            && data.content.replace(content).is_some()
        {
            channel.subscribers.data_begins_anew();
        }
        Ok(Merged {
            is_first: true,
            removed: Vec::new(),
        })
    }
}

impl Tables {
    /// Who an update counts as coming from, if it is allowed.
    fn writer(&self, request: &Request) -> Option<ConnId> {
        let channel = self.channels.get(request.channel)?;
        let may_write = channel.subscribers.may_write(request.from);
        if channel.owner == Some(request.from) || may_write {
            return Some(request.from);
        }
        channel.owner.filter(|_| self.is_server(request.from))
    }
}

/// An update's data, and the client on whose behalf it is sent.
fn parse(body: &[u8]) -> Option<(AnyView<'_>, u32)> {
    let update = ChannelDataUpdate::parse(body).ok()?;
    let data = update.data.filter(|data| !data.type_url.is_empty())?;
    Some((data, update.context_conn_id))
}
