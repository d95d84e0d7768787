//! Packets and what is in them: the views agree with the protobuf library.

use lagometer_protocol::messages::channeldpb;
use lagometer_protocol::schema::Schema;
use lagometer_protocol::{
    ChannelDataUpdate, FromGateway, MessagePack, Packet, ServerForward, ToGateway,
};
use prost::Message;

pub(crate) fn body(data: &[u8]) {
    let packet = Packet::new_checked(data);
    let owned = by_library::<channeldpb::Packet>("channeldpb.Packet", data);
    assert_eq!(packet.is_ok(), owned.is_some());
    let (Ok(packet), Some(owned)) = (packet, owned) else {
        return;
    };
    assert_eq!(channeldpb::Packet::from(packet), owned);

    let mut encoded = Vec::new();
    for message in packet.messages() {
        message.encode_in_packet(&mut encoded);
        check_body(&message);
    }
    assert_eq!(encoded, owned.encode_to_vec());
}

/// What the library reads of fields whose wire type fits; it refuses others,
/// which protobuf has unknown.
fn by_library<M: Message + Default>(full_name: &str, bytes: &[u8]) -> Option<M> {
    let data_type = Schema::bundled().find(full_name).expect("a bundled type");
    M::decode(&*data_type.without_misfits(bytes).ok()?).ok()
}

fn check_body(message: &MessagePack<'_>) {
    let update = ChannelDataUpdate::parse(message.body).ok().map(Into::into);
    assert_eq!(
        update,
        by_library::<channeldpb::ChannelDataUpdateMessage>(
            "channeldpb.ChannelDataUpdateMessage",
            message.body
        )
    );
    let forward = ServerForward::parse(message.body).ok().map(Into::into);
    assert_eq!(
        forward,
        by_library::<channeldpb::ServerForwardMessage>(
            "channeldpb.ServerForwardMessage",
            message.body
        )
    );
    if let Ok(there) = ToGateway::decode(message) {
        let mut body = Vec::new();
        there.encode_body(&mut body);
        assert_eq!(there.msg_type() as u32, message.msg_type);
        // By their text: NaN is not equal to itself.
        let again = ToGateway::decode(&MessagePack {
            body: &body,
            ..*message
        });
        assert_eq!(format!("{again:?}"), format!("{:?}", Ok::<_, ()>(there)));
    }
    if let Ok(back) = FromGateway::decode(message) {
        let mut body = Vec::new();
        back.encode_body(&mut body);
        let again = FromGateway::decode(&MessagePack {
            body: &body,
            ..*message
        });
        assert_eq!(format!("{again:?}"), format!("{:?}", Ok::<_, ()>(back)));
    }
}
