-- ENet 1.3 for Wireshark and tshark: every command with its fields.
--
-- A datagram is ENet's where its commands fill it from the header to the last byte,
-- with a checksum in front of them or without. No port is assumed; "Decode As" and the
-- preference take one. What a host compressed is shown as bytes.

local enet = Proto("enet", "ENet")

local names = {
    [1] = "ACKNOWLEDGE", [2] = "CONNECT", [3] = "VERIFY_CONNECT", [4] = "DISCONNECT",
    [5] = "PING", [6] = "SEND_RELIABLE", [7] = "SEND_UNRELIABLE", [8] = "SEND_FRAGMENT",
    [9] = "SEND_UNSEQUENCED", [10] = "BANDWIDTH_LIMIT", [11] = "THROTTLE_CONFIGURE",
    [12] = "SEND_UNRELIABLE_FRAGMENT",
}

local f = {
    peer = ProtoField.uint16("enet.peer", "Peer", base.DEC, nil, 0x0fff),
    session = ProtoField.uint16("enet.session", "Session", base.DEC, nil, 0x3000),
    compressed = ProtoField.bool("enet.compressed", "Compressed", 16, nil, 0x4000),
    timed = ProtoField.bool("enet.has_time", "Time follows", 16, nil, 0x8000),
    time = ProtoField.uint16("enet.sent_time", "Sent at (ms)"),
    checksum = ProtoField.uint32("enet.checksum", "Checksum", base.HEX),
    packed = ProtoField.bytes("enet.packed", "Compressed commands"),
    command = ProtoField.uint8("enet.command", "Command", base.DEC, names, 0x0f),
    wants_ack = ProtoField.bool("enet.wants_ack", "Wants an acknowledgement", 8, nil, 0x80),
    unsequenced = ProtoField.bool("enet.unsequenced", "Unsequenced", 8, nil, 0x40),
    channel = ProtoField.uint8("enet.channel", "Channel"),
    seq = ProtoField.uint16("enet.seq", "Reliable sequence number"),
    data = ProtoField.bytes("enet.data", "Payload"),
    again = ProtoField.bool("enet.retransmission", "Sent before"),
    first = ProtoField.framenum("enet.first_frame", "First sent in", base.NONE),
}
local all = {}
for _, field in pairs(f) do all[#all + 1] = field end

-- A number of a command: its name in filters, in words, and its bytes.
local function number(name, words, bytes)
    local kinds = { [1] = ProtoField.uint8, [2] = ProtoField.uint16, [4] = ProtoField.uint32 }
    local field = kinds[bytes]("enet." .. name, words)
    all[#all + 1] = field
    return { field = field, bytes = bytes }
end

local connect = {
    number("outgoing_peer", "Outgoing peer", 2),
    number("incoming_session", "Incoming session", 1),
    number("outgoing_session", "Outgoing session", 1),
    number("mtu", "MTU", 4),
    number("window", "Window", 4),
    number("channels", "Channels", 4),
    number("incoming_bandwidth", "Incoming bandwidth (B/s)", 4),
    number("outgoing_bandwidth", "Outgoing bandwidth (B/s)", 4),
    number("throttle.interval", "Throttle's interval (ms)", 4),
    number("throttle.acceleration", "Throttle's acceleration", 4),
    number("throttle.deceleration", "Throttle's deceleration", 4),
    number("connect_id", "Connection", 4),
}
local reason = number("reason", "The application's number", 4)
local connecting = {}
for _, each in ipairs(connect) do connecting[#connecting + 1] = each end
connecting[#connecting + 1] = reason
local length = number("length", "Length", 2)
length.is_length = true
local fragment = {
    number("start_seq", "First fragment's sequence number", 2),
    length,
    number("fragments", "Fragments", 4),
    number("fragment", "Fragment", 4),
    number("total", "Length of the whole", 4),
    number("offset", "Offset", 4),
}

-- What follows the four bytes that every command begins with.
local layouts = {
    [1] = { number("ack.seq", "Acknowledged sequence number", 2),
        number("ack.sent_time", "Acknowledged sent time (ms)", 2) },
    [2] = connecting,
    [3] = connect,
    [4] = { reason },
    [5] = {},
    [6] = { length },
    [7] = { number("unreliable_seq", "Unreliable sequence number", 2), length },
    [8] = fragment,
    [9] = { number("group", "Unsequenced group", 2), length },
    [10] = { connect[7], connect[8] },
    [11] = { connect[9], connect[10], connect[11] },
    [12] = fragment,
}
enet.fields = all

local malformed = ProtoExpert.new("enet.malformed", "No command of ENet's",
    expert.group.MALFORMED, expert.severity.ERROR)
local repeated = ProtoExpert.new("enet.repeated", "A command that was sent before",
    expert.group.SEQUENCE, expert.severity.NOTE)
enet.experts = { malformed, repeated }

enet.prefs.port = Pref.uint("UDP port", 0, "A port whose datagrams are ENet's whatever they hold; 0 for none")

-- Frames in which reliable commands were first sent, of one capture.
local sent = {}
function enet.init() sent = {} end

-- The bytes of the command at `at`, payload included; nothing where there is none.
local function size_of(tvb, at)
    if tvb:len() - at < 4 then return nil end
    local kind = tvb(at, 1):uint()
    local layout = layouts[kind % 16]
    if not layout or math.floor(kind / 16) % 4 ~= 0 then return nil end
    local bytes, payload_at = 4, nil
    for _, each in ipairs(layout) do
        if each.is_length then payload_at = bytes end
        bytes = bytes + each.bytes
    end
    if bytes > tvb:len() - at then return nil end
    local payload = payload_at and tvb(at + payload_at, 2):uint() or 0
    if payload > tvb:len() - at - bytes then return nil end
    return bytes + payload, payload
end

-- Whether commands fill the datagram from `at` on.
local function are_commands(tvb, at)
    if at >= tvb:len() then return false end
    while at < tvb:len() do
        local size = size_of(tvb, at)
        if not size then return false end
        at = at + size
    end
    return true
end

local function header_bytes(tvb)
    return tvb(0, 1):uint() >= 0x80 and 4 or 2
end

local function command(tvb, at, pinfo, tree)
    local size, payload = size_of(tvb, at)
    local kind = tvb(at, 1):uint()
    local seq = tvb(at + 2, 2):uint()
    local name = names[kind % 16]
    local branch = tree:add(enet, tvb(at, size), name)
    branch:add(f.command, tvb(at, 1))
    branch:add(f.wants_ack, tvb(at, 1))
    branch:add(f.unsequenced, tvb(at, 1))
    branch:add(f.channel, tvb(at + 1, 1))
    branch:add(f.seq, tvb(at + 2, 2))
    local place = at + 4
    for _, each in ipairs(layouts[kind % 16]) do
        branch:add(each.field, tvb(place, each.bytes))
        place = place + each.bytes
    end
    if payload > 0 then branch:add(f.data, tvb(place, payload)) end
    if kind >= 0x80 then
        local key = table.concat({
            tostring(pinfo.src), pinfo.src_port, tostring(pinfo.dst), pinfo.dst_port,
            tvb(0, 2):uint() % 0x4000, kind, tvb(at + 1, 1):uint(), seq,
        }, "|")
        if not sent[key] then
            sent[key] = pinfo.number
        elseif sent[key] ~= pinfo.number then
            branch:add(f.again, true):set_generated()
            branch:add(f.first, sent[key]):set_generated()
            branch:add_proto_expert_info(repeated)
        end
    end
    return size, name .. " " .. seq
end

local function dissect(tvb, pinfo, root)
    pinfo.cols.protocol = "ENet"
    local tree = root:add(enet, tvb())
    local at = tvb:len() >= 2 and header_bytes(tvb) or 2
    if tvb:len() < at then
        tree:add_proto_expert_info(malformed)
        return tvb:len()
    end
    tree:add(f.peer, tvb(0, 2))
    tree:add(f.session, tvb(0, 2))
    tree:add(f.compressed, tvb(0, 2))
    tree:add(f.timed, tvb(0, 2))
    if at == 4 then tree:add(f.time, tvb(2, 2)) end
    if not are_commands(tvb, at) and are_commands(tvb, at + 4) then
        tree:add(f.checksum, tvb(at, 4))
        at = at + 4
    end
    if math.floor(tvb(0, 1):uint() / 0x40) % 2 == 1 then
        if at < tvb:len() then tree:add(f.packed, tvb(at)) end
        pinfo.cols.info = "Compressed"
        return tvb:len()
    end
    local said = {}
    while at < tvb:len() do
        if not size_of(tvb, at) then
            tree:add_proto_expert_info(malformed)
            said[#said + 1] = "malformed"
            break
        end
        local size, words = command(tvb, at, pinfo, tree)
        said[#said + 1] = words
        at = at + size
    end
    pinfo.cols.info = table.concat(said, ", ")
    return tvb:len()
end

function enet.dissector(tvb, pinfo, root)
    if tvb:len() == 0 then return 0 end
    return dissect(tvb, pinfo, root)
end

local function heuristic(tvb, pinfo, root)
    if tvb:len() < 6 or math.floor(tvb(0, 1):uint() / 0x40) % 2 == 1 then return false end
    local at = header_bytes(tvb)
    if not (are_commands(tvb, at) or are_commands(tvb, at + 4)) then return false end
    pinfo.conversation = enet
    dissect(tvb, pinfo, root)
    return true
end

enet:register_heuristic("udp", heuristic)

local ports = DissectorTable.get("udp.port")
ports:add_for_decode_as(enet)
local taken = 0
function enet.prefs_changed()
    if taken ~= 0 then ports:remove(taken, enet) end
    taken = enet.prefs.port
    if taken ~= 0 then ports:add(taken, enet) end
end
