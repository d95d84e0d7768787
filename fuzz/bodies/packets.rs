//! Packets and what is in them: the views agree with the protobuf library.

use lagometer_protocol::messages::channeldpb;
use lagometer_protocol::{
    ChannelDataUpdate, FromGateway, MessagePack, Packet, ServerForward, ToGateway,
};
use prost::Message;

pub(crate) fn body(data: &[u8]) {
    let packet = Packet::new_checked(data);
    let owned = channeldpb::Packet::decode(data);
    assert_eq!(packet.is_ok(), owned.is_ok());
    let (Ok(packet), Ok(owned)) = (packet, owned) else {
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

fn check_body(message: &MessagePack<'_>) {
    let update = ChannelDataUpdate::parse(message.body).ok().map(Into::into);
    assert_eq!(
        update,
        channeldpb::ChannelDataUpdateMessage::decode(message.body).ok()
    );
    let forward = ServerForward::parse(message.body).ok().map(Into::into);
    assert_eq!(
        forward,
        channeldpb::ServerForwardMessage::decode(message.body).ok()
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
