-- The gateway's protocol (channeld's frames) for Wireshark and tshark: over TCP, in a
-- WebSocket's binary messages, and over KCP where `kcp.lua` is loaded beside it.
--
-- A stream begins with a frame: 'C', 'H', a length of two bytes, a byte of compression,
-- one packet of messages in protobuf. Older clients write the length over the letters
-- of `CHNL`. Bodies are shown as fields by their numbers; a preference has Wireshark's own
-- ProtoBuf dissector name them, which must know `channeld.proto` by its search paths.

local channeld = Proto("channeld", "Channel gateway")
local stream = Proto("channeld.stream", "Channel gateway over an ordered stream")

local HEADER = 5
-- The longest packet that is unpacked, in bytes.
local LONGEST = 1048576
-- How deep bodies are shown.
local DEEPEST = 8

local types = {
    [1] = "AUTH", [3] = "CREATE_CHANNEL", [4] = "REMOVE_CHANNEL", [5] = "LIST_CHANNEL",
    [6] = "SUB_TO_CHANNEL", [7] = "UNSUB_FROM_CHANNEL", [8] = "CHANNEL_DATA_UPDATE",
    [9] = "DISCONNECT", [10] = "CREATE_SPATIAL_CHANNEL", [11] = "QUERY_SPATIAL_CHANNEL",
    [12] = "CHANNEL_DATA_HANDOVER", [13] = "SPATIAL_REGIONS_UPDATE",
    [14] = "UPDATE_SPATIAL_INTEREST", [15] = "CREATE_ENTITY_CHANNEL",
    [16] = "ENTITY_GROUP_ADD", [17] = "ENTITY_GROUP_REMOVE", [18] = "SPATIAL_CHANNELS_READY",
    [20] = "RECOVERY_CHANNEL_DATA", [21] = "RECOVERY_END", [22] = "CHANNEL_OWNER_LOST",
    [23] = "CHANNEL_OWNER_RECOVERED", [99] = "DEBUG_GET_SPATIAL_REGIONS",
}
local USER_SPACE = 100
-- Messages whose body has one shape in both directions.
local bodies = {
    [8] = "ChannelDataUpdateMessage", [9] = "DisconnectMessage",
    [12] = "ChannelDataHandoverMessage", [13] = "SpatialRegionsUpdateMessage",
    [14] = "UpdateSpatialInterestMessage", [16] = "AddEntityGroupMessage",
    [17] = "RemoveEntityGroupMessage", [18] = "SpatialChannelsReadyMessage",
    [20] = "ChannelDataRecoveryMessage",
}
local packings = { [0] = "none", [1] = "snappy" }

local f = {
    form = ProtoField.string("channeld.form", "Header"),
    length = ProtoField.uint16("channeld.length", "Length"),
    packing = ProtoField.uint8("channeld.compression", "Compression", base.DEC, packings),
    payload = ProtoField.bytes("channeld.payload", "Payload"),
    unpacked = ProtoField.uint32("channeld.unpacked", "Length unpacked"),
    message = ProtoField.bytes("channeld.message", "Message"),
    channel = ProtoField.uint32("channeld.channel", "Channel"),
    broadcast = ProtoField.uint32("channeld.broadcast", "Broadcast", base.HEX),
    stub = ProtoField.uint32("channeld.stub", "Stub"),
    kind = ProtoField.uint32("channeld.type", "Type", base.DEC, types),
    body = ProtoField.bytes("channeld.body", "Body"),
    body_length = ProtoField.uint32("channeld.body_length", "Length of the body"),
    text = ProtoField.string("channeld.text", "Text"),
}
channeld.fields = f

local malformed = ProtoExpert.new("channeld.malformed", "No frame of the gateway's",
    expert.group.MALFORMED, expert.severity.ERROR)
channeld.experts = { malformed }

channeld.prefs.ports = Pref.range("TCP ports", "", "Ports whose streams are a gateway's whatever they begin with", 65535)
channeld.prefs.ws_ports = Pref.range("WebSocket ports", "", "Ports whose WebSockets carry a gateway's frames", 65535)

channeld.prefs.names = Pref.bool("Name the fields of bodies", false, "By the ProtoBuf dissector, whose search paths must lead to channeld.proto")

-- The number of bytes of a frame, by its header.
local function frame_bytes(tvb, at)
    local high, low = tvb(at + 2, 1):uint(), tvb(at + 3, 1):uint()
    if high == 0x4e and low > 0 then
        -- An older header, unless the frame is of 19,968 bytes and more: then no frame
        -- follows so soon.
        local after = at + HEADER + low
        local left = tvb:len() - after
        if left == 0 or (left > 0 and tvb(after, 1):uint() == 0x43) then
            return HEADER + low, true
        end
    end
    return HEADER + high * 256 + low, false
end

-- A variable-length number of protobuf at `at` of a string: its value and what follows;
-- nothing where it is cut off or too long.
local function varint(bytes, at)
    local value, factor = 0, 1
    for place = at, at + 9 do
        local byte = bytes:byte(place)
        if not byte then return nil end
        value = value + (byte % 128) * factor
        if byte < 128 then return value, place + 1 end
        factor = factor * 128
    end
    return nil
end

-- What snappy packed; nothing where it did not.
local function unsnap(bytes)
    local length, at = varint(bytes, 1)
    if not length or length > LONGEST then return nil end
    local out, have = {}, 0
    local function put(piece)
        for place = 1, #piece do out[have + place] = piece:sub(place, place) end
        have = have + #piece
    end
    while at <= #bytes do
        local tag = bytes:byte(at)
        local kind = tag % 4
        at = at + 1
        if kind == 0 then
            local size = math.floor(tag / 4)
            if size >= 60 then
                local extra = size - 59
                size = 0
                for place = extra, 1, -1 do
                    local byte = bytes:byte(at + place - 1)
                    if not byte then return nil end
                    size = size * 256 + byte
                end
                at = at + extra
            end
            size = size + 1
            if at + size - 1 > #bytes or have + size > length then return nil end
            put(bytes:sub(at, at + size - 1))
            at = at + size
        else
            local offset_bytes = kind == 1 and 1 or (kind == 2 and 2 or 4)
            if at + offset_bytes - 1 > #bytes then return nil end
            local offset = 0
            for place = offset_bytes, 1, -1 do
                offset = offset * 256 + bytes:byte(at + place - 1)
            end
            at = at + offset_bytes
            local size = math.floor(tag / 4) + 1
            if kind == 1 then
                size = math.floor(tag / 4) % 8 + 4
                offset = offset + math.floor(tag / 32) * 256
            end
            if offset == 0 or offset > have or have + size > length then return nil end
            for _ = 1, size do
                out[have + 1] = out[have + 1 - offset]
                have = have + 1
            end
        end
    end
    if have ~= length then return nil end
    return table.concat(out)
end

-- The fields of a protobuf message from `at` to `last` (both places of a string): number,
-- wire type, value or nothing, where the value is and how long. Nothing where it is none.
local function fields(bytes, at, last)
    local found = {}
    while at <= last do
        local key, after = varint(bytes, at)
        if not key or after > last + 1 then return nil end
        local number, wire = math.floor(key / 8), key % 8
        local each = { number = number, wire = wire, from = at }
        if number == 0 then return nil end
        if wire == 0 then
            each.value, each.ends = varint(bytes, after)
            if not each.value then return nil end
        elseif wire == 1 then
            each.ends = after + 8
        elseif wire == 5 then
            each.ends = after + 4
        elseif wire == 2 then
            local length, start = varint(bytes, after)
            if not length then return nil end
            each.at, each.length, each.ends = start, length, start + length
        else
            return nil
        end
        if each.ends > last + 1 then return nil end
        found[#found + 1] = each
        at = each.ends
    end
    return found
end

local function is_text(bytes, at, length)
    return length > 0 and not bytes:sub(at, at + length - 1):find("[^\9\10\32-\126]")
end

-- Shows a body by the numbers of its fields.
local function show(tvb, bytes, at, last, tree, depth)
    local found = fields(bytes, at, last)
    if not found or depth > DEEPEST then return false end
    for _, each in ipairs(found) do
        local range = tvb(each.from - 1, each.ends - each.from)
        if each.wire == 0 then
            tree:add(range, string.format("%u: %.0f", each.number, each.value))
        elseif each.wire == 2 then
            local branch = tree:add(range, string.format("%u: %u bytes", each.number, each.length))
            if is_text(bytes, each.at, each.length) then
                branch:add(f.text, tvb(each.at - 1, each.length))
            elseif each.length > 0 then
                show(tvb, bytes, each.at, each.at + each.length - 1, branch, depth + 1)
            end
        else
            tree:add(range, string.format("%u: %u bytes, fixed", each.number, each.wire == 1 and 8 or 4))
        end
    end
    return true
end

local function named(tvb, pinfo, tree, kind)
    local name = channeld.prefs.names and bodies[kind]
    if not name then return end
    local is_there, protobuf = pcall(Dissector.get, "protobuf")
    if not is_there or not protobuf then return end
    pinfo.private["pb_msg_type"] = "message,channeldpb." .. name
    pcall(protobuf.call, protobuf, tvb:tvb(), pinfo, tree)
end

local function message(tvb, bytes, at, length, pinfo, tree)
    local branch = tree:add(f.message, tvb(at - 1, length))
    local found = fields(bytes, at, at + length - 1)
    if not found then
        branch:add_proto_expert_info(malformed)
        return "malformed"
    end
    -- What is zero is not written.
    local values, body = {}, nil
    for _, each in ipairs(found) do
        if each.wire == 0 then
            values[each.number] = each
        elseif each.wire == 2 and each.number == 5 then
            body = each
        end
    end
    local function put(field, number)
        local each = values[number]
        if each then
            local value = each.value % 4294967296
            branch:add(field, tvb(each.from - 1, each.ends - each.from), value)
            return value
        end
        branch:add(field, 0):set_generated()
        return 0
    end
    local channel = put(f.channel, 1)
    put(f.broadcast, 2)
    put(f.stub, 3)
    local kind = put(f.kind, 4)
    branch:add(f.body_length, body and body.length or 0):set_generated()
    if body and body.length > 0 then
        local range = tvb(body.at - 1, body.length)
        local inside = branch:add(f.body, range)
        show(tvb, bytes, body.at, body.at + body.length - 1, inside, 1)
        named(range, pinfo, inside, kind)
    end
    local name = types[kind] or (kind >= USER_SPACE and "user " .. kind or "type " .. kind)
    branch:append_text(", " .. name .. " of channel " .. channel)
    return name
end

local function packet(tvb, pinfo, tree)
    local bytes = tvb:range():bytes():raw()
    local found = fields(bytes, 1, #bytes)
    local said = {}
    if not found then
        tree:add_proto_expert_info(malformed)
        return { "malformed" }
    end
    for _, each in ipairs(found) do
        if each.number == 1 and each.wire == 2 then
            said[#said + 1] = message(tvb, bytes, each.at, each.length, pinfo, tree)
        end
    end
    return said
end

-- One whole frame.
local function frame(tvb, pinfo, root)
    local tree = root:add(channeld, tvb())
    if tvb:len() < HEADER or tvb(0, 1):uint() ~= 0x43 or tvb(1, 1):uint() ~= 0x48 then
        tree:add_proto_expert_info(malformed)
        return { "malformed" }
    end
    local length, is_old = frame_bytes(tvb, 0)
    tree:add(f.form, is_old and "CHNL" or "CH"):set_generated()
    if is_old then
        tree:add(f.length, tvb(3, 1), length - HEADER)
    else
        tree:add(f.length, tvb(2, 2))
    end
    tree:add(f.packing, tvb(4, 1))
    if tvb:len() <= HEADER then
        tree:add_proto_expert_info(malformed)
        return { "empty" }
    end
    local payload = tvb(HEADER)
    if tvb(4, 1):uint() ~= 1 then return packet(payload:tvb(), pinfo, tree) end
    tree:add(f.payload, payload)
    local plain = unsnap(payload:bytes():raw())
    if not plain then
        tree:add_proto_expert_info(malformed)
        return { "malformed" }
    end
    tree:add(f.unpacked, #plain):set_generated()
    if #plain == 0 then return {} end
    return packet(ByteArray.new(plain, true):tvb("Unpacked"), pinfo, tree)
end

local function frame_with_columns(tvb, pinfo, root)
    pinfo.cols.protocol = "CHANNELD"
    local said = frame(tvb, pinfo, root)
    pinfo.cols.info:append(" " .. table.concat(said, ", "))
    return tvb:len()
end

local function length_of(tvb, _, at)
    return (frame_bytes(tvb, at))
end

function channeld.dissector(tvb, pinfo, root)
    if tvb:len() == 0 then return 0 end
    if pinfo.can_desegment == 0 and tvb:len() < HEADER then return 0 end
    pinfo.cols.protocol = "CHANNELD"
    pinfo.cols.info = ""
    dissect_tcp_pdus(tvb, root, HEADER, length_of, frame_with_columns)
    return tvb:len()
end

-- Over KCP: chunks of an ordered stream, put together here. What is kept of one capture:
-- bytes that are left over of each flow, and the frames that each packet completed.
local left, frames = {}, {}
function channeld.init()
    left, frames = {}, {}
end

function stream.dissector(tvb, pinfo, root)
    local flow = tostring(pinfo.private["channeld.flow"])
    local key = pinfo.number .. "|" .. flow
    if not pinfo.visited then
        local state = left[flow]
        local chunk = tvb:range():bytes():raw()
        -- Whatever else games carry over KCP is not looked at.
        if state == nil and chunk:sub(1, 2) ~= "CH" then state = false end
        if state ~= false then
            local bytes = (state or "") .. chunk
            local whole = frames[key] or {}
            while #bytes >= HEADER do
                if bytes:sub(1, 2) ~= "CH" then
                    bytes = false
                    break
                end
                local view = ByteArray.new(bytes, true):tvb("Stream")
                local length = frame_bytes(view, 0)
                if #bytes < length then break end
                whole[#whole + 1] = bytes:sub(1, length)
                bytes = bytes:sub(length + 1)
            end
            frames[key] = whole
            left[flow] = bytes
        else
            left[flow] = false
        end
    end
    local said = {}
    for _, each in ipairs(frames[key] or {}) do
        local view = ByteArray.new(each, true):tvb("Frame")
        for _, name in ipairs(frame(view, pinfo, root)) do said[#said + 1] = name end
        pinfo.cols.protocol = "CHANNELD"
    end
    if #said > 0 then pinfo.cols.info:append(": " .. table.concat(said, ", ")) end
    return tvb:len()
end

local function heuristic(tvb, pinfo, root)
    if tvb:len() < HEADER then return false end
    if tvb(0, 1):uint() ~= 0x43 or tvb(1, 1):uint() ~= 0x48 then return false end
    -- Compressed or not, and the first key of a packet: field 1, with a length.
    local packing = tvb(4, 1):uint()
    if packing > 1 then return false end
    if packing == 0 and tvb:len() > HEADER and tvb(HEADER, 1):uint() ~= 0x0a then return false end
    pinfo.conversation = channeld
    -- Asked by a heuristic it may not wait for what is missing, unless it says so.
    if pinfo.can_desegment > 0 then pinfo.can_desegment = 2 end
    channeld.dissector(tvb, pinfo, root)
    return true
end

channeld:register_heuristic("tcp", heuristic)

local tcp = DissectorTable.get("tcp.port")
tcp:add_for_decode_as(channeld)
local web_sockets = DissectorTable.get("ws.port")
local taken, taken_ws = "", ""
function channeld.prefs_changed()
    if tostring(taken) ~= "" then tcp:remove(taken, channeld) end
    taken = channeld.prefs.ports
    if tostring(taken) ~= "" then tcp:add(taken, channeld) end
    if tostring(taken_ws) ~= "" then web_sockets:remove(taken_ws, channeld) end
    taken_ws = channeld.prefs.ws_ports
    if tostring(taken_ws) ~= "" then web_sockets:add(taken_ws, channeld) end
end
