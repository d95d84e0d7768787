//! The lists of channel data: replacing and cutting them.

use std::collections::VecDeque;

use crate::schema::layout::{Kind, Layout, Shape};
use crate::schema::rules::Rule;
use crate::wire::{self, Field, WireError, WireType};

use super::fields::append_elements;
use super::node::{Node, Value};
use super::{MergeContext, MergeOptions};

/// Which lists an update has touched so far, so that the first of a field's
/// occurrences replaces the old list and all others append.
#[derive(Debug, Default)]
pub(super) struct TouchedLists(Vec<u32>);

impl TouchedLists {
    /// Takes in one occurrence of a list's field.
    pub(super) fn merge(
        &mut self,
        node: &mut Node,
        number: u32,
        kind: Kind,
        field: &Field<'_>,
        options: MergeOptions,
    ) -> Result<(), WireError> {
        let mut elements = VecDeque::new();
        append_elements(&mut elements, kind, field)?;
        if elements.is_empty() {
            return Ok(());
        }
        let first = !self.0.contains(&number);
        if first {
            self.0.push(number);
        }
        let list = node.list_or_empty(number);
        if first && options.replace_list {
            list.clear();
        }
        list.append(&mut elements);
        Ok(())
    }

    /// Cuts lists to their limits: all of a state's, for it may have begun with
    /// more than a channel is to keep, and those of a delta that were touched.
    ///
    /// In a delta a list that keeps what is recent stays uncut: how far back
    /// it reaches depends on what comes before it in the state.
    ///
    /// Returns how many elements were looked at: what is dated ahead is never too old,
    /// and of a long list of such all are, at every update.
    pub(super) fn finish(
        self,
        node: &mut Node,
        layout: &Layout,
        options: MergeOptions,
        context: &MergeContext,
        is_delta: bool,
    ) -> usize {
        let limit = options.list_size_limit as usize;
        let mut looked_at = 0;
        if limit == 0 {
            return looked_at;
        }
        let lists = layout.fields.iter().filter(|known| {
            let is_list = matches!(known.shape, Shape::List { .. });
            is_list && (!is_delta || self.0.contains(&known.number))
        });
        for known in lists.filter(|known| known.rule != Rule::Skip) {
            if node.get(known.number).is_none() {
                continue;
            }
            let list = node.list_or_empty(known.number);
            let excess = list.len().saturating_sub(limit);
            match known.rule {
                Rule::Recent {
                    time_field,
                    span_ms,
                } if options.truncate_top => {
                    if is_delta {
                        continue;
                    }
                    let oldest_ms = context.now_unix_ms.saturating_sub(span_ms);
                    let mut cut = excess;
                    while cut > 0 && time_ms(&list[cut - 1], time_field) >= oldest_ms {
                        cut -= 1;
                    }
                    looked_at += excess - cut;
                    list.drain(..cut);
                }
                _ if options.truncate_top => drop(list.drain(..excess)),
                _ => list.truncate(limit),
            }
        }
        looked_at
    }
}

/// The time an element says it is from; 0 where it says none.
fn time_ms(element: &Value, time_field: u32) -> i64 {
    let Value::Bytes(encoded) = element else {
        return 0;
    };
    match wire::find(encoded, &[time_field], WireType::Varint) {
        Ok(Some(wire::Value::Varint(bits))) => bits.cast_signed(),
        _ => 0,
    }
}
