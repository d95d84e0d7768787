//! All cases, and how the original does in each.

mod channels;
mod data;
mod handover;
mod merging;
mod messages;
pub(crate) mod recovery;
mod robust;
mod soak;
mod spatial;
mod stream_transports;
mod wire;

use crate::Case;
use crate::Original::{Differs, Same, SameAlone, Unsteady};

macro_rules! cases {
    ($($original:ident $(($instead:literal))? $module:ident :: $name:ident,)*) => {
        vec![$(Case {
            name: stringify!($name),
            run: $module::$name,
            original: $original $(($instead))?,
        },)*]
    };
}

/// In the order of the items they are numbered after.
pub(crate) fn all() -> Vec<Case> {
    cases![
        Same wire::c01_frames_are_read_however_they_are_cut,
        Differs("WouldBlock") wire::c01_the_older_header_is_read_too,
        Same wire::c02_a_bad_tag_or_an_empty_frame_closes,
        Differs("not closed") wire::c03_a_frame_that_holds_no_packet_closes,
        Same wire::c04_before_the_login_all_else_is_refused,
        Same wire::c04_a_refused_message_type_is_ignored,
        Same wire::c05_a_login_outside_global_closes,
        Differs("not closed") wire::c05_a_login_to_a_channel_that_there_is_not_closes,
        Same channels::c06_globals_owner_is_notified_of_logins_and_channels,
        Same channels::c06_a_taken_global_is_refused_in_silence,
        Same channels::c06_lists_are_filtered_by_type_and_metadata,
        Same channels::c06_subscriptions_are_reported_to_asker_subject_and_owner,
        Same channels::c06_a_client_subscribes_only_itself,
        Same channels::c07_an_interval_changes_in_silence,
        Same channels::c08_a_change_of_access_is_reported,
        Same data::c09_the_full_state_comes_after_delay_and_interval,
        Same data::c09_windows_are_counted_from_the_full_state,
        Same data::c10_ones_own_updates_are_left_out_unless_asked_for,
        Same data::c10_the_full_state_is_left_out_when_asked,
        Same data::c10_without_access_nothing_is_sent,
        Same data::c10_what_was_missed_without_access_comes_as_updates,
        Same data::c10_readers_do_not_write,
        Same data::c11_masks_leave_fields_out,
        Differs("left: None") data::c11_a_masked_subscriber_takes_nothing_from_others,
        Unsteady data::c12_every_update_comes_once_and_in_order,
        Unsteady data::c12_the_last_value_always_arrives,
        Same merging::c13_entries_merge_deeply_and_removals_cascade,
        Differs("channel data: nothing of the kind came") merging::c13_a_removal_is_forwarded_in_a_window_with_others,
        Same merging::c13_a_lists_limit_holds_with_every_update,
        Same merging::c13_a_replaced_list_in_a_window_is_the_last,
        Same messages::c14_flags_choose_the_receivers,
        Same messages::c14_a_clients_message_goes_to_the_owner_alone,
        Same messages::c14_without_an_owner_a_message_is_dropped,
        Same messages::c15_a_server_reaches_whoever_it_names,
        Same channels::c16_a_removal_is_reported_to_subscribers,
        Same channels::c16_an_owners_end_removes_its_channel,
        Differs("word of the removal: nothing of the kind came") channels::c16_an_owners_end_removes_its_channel_with_word,
        Same channels::c16_a_subscribers_end_is_reported_to_the_owner,
        Same channels::c17_ids_count_up_and_removed_ones_come_again,
        Same channels::c17_entity_channels_have_the_ids_of_their_entities,
        Same channels::c17_an_entity_may_be_made_like_other_channels,
        Same spatial::c18_servers_share_the_grid_and_its_border,
        Same spatial::c18_places_lie_in_cells,
        Same spatial::c19_interest_is_sampled_in_the_grid,
        Same handover::c20_an_entity_goes_to_the_server_of_its_cell,
        Same handover::c20_within_a_cell_nothing_is_handed_over,
        Same handover::c20_a_group_goes_together,
        Same handover::c20_a_locked_entity_stays,
        Same channels::c21_well_known_entities_find_those_who_come_later,
        Same recovery::c22_a_server_takes_up_what_it_owned,
        Same recovery::c22_clients_are_not_served_until_the_recovery_ends,
        Same recovery::c22_a_server_that_disconnects_itself_may_come_back,
        Same recovery::c22_an_owner_that_is_killed_is_recovered,
        Same wire::c23_snappy_begins_when_a_peer_compresses,
        Same stream_transports::c24_kcp_as_kcp_go_speaks_it,
        Same stream_transports::c25_websocket_messages_of_one_and_of_many_frames,
        SameAlone robust::c26_metrics_have_their_names,
        Differs("channel data: nothing of the kind came") robust::c27_a_reader_that_stops_harms_only_itself,
        Same wire::c28_a_message_larger_than_a_frame_is_dropped_and_nothing_else,
        Differs("an answer: nothing of the kind came") data::c29_an_interval_of_zero_harms_nobody,
        Differs("an answer: nothing of the kind came") data::c29_data_of_an_unknown_type_is_carried,
        Differs("channel data: the gateway has closed the connection") data::c30_data_of_another_type_is_refused,
        Unsteady data::c30_a_mask_that_fits_nothing_harms_nobody,
        Differs("an answer: the gateway has closed the connection") messages::c30_naming_nobody_in_a_channel_without_owner_is_dropped,
        Differs("an answer: the gateway has closed the connection") messages::c30_a_spawn_without_a_channel_harms_nobody,
        Differs("an answer: the gateway has closed the connection") messages::c30_a_spawn_at_a_place_without_a_grid_harms_nobody,
        Differs("value: Closed") robust::c30_connection_ids_that_run_out_are_no_end,
        Same robust::c30_noise_ends_its_own_connection_only,
        Same robust::c30_a_bomb_is_not_unpacked,
        Same robust::c30_a_frame_a_byte_at_a_time_and_a_crowd_that_comes_and_goes,
        Unsteady soak::c30_random_sessions_harm_nobody_and_leave_no_memory_behind,
        Unsteady robust::c30_what_is_sent_to_a_removed_channel_is_dropped,
    ]
}
