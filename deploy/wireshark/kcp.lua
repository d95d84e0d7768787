-- KCP for Wireshark and tshark: segments, kcp-go's forward error correction around
-- them, and the exchange by which a gateway of Lagometer proves a client's address.
--
-- A datagram is KCP's where it is segments from its first byte to its last. No port is
-- assumed; "Decode As" and the preference take one. What a conversation carries is put
-- in order and handed to the dissector `channeld`, where that is loaded.

local kcp = Proto("kcp", "KCP")

local commands = { [81] = "PUSH", [82] = "ACK", [83] = "WASK", [84] = "WINS" }
local shards = { [0xf1] = "data", [0xf2] = "parity" }
local proofs = { lgH1 = "hello", lgC1 = "challenge", lgA1 = "answer" }

local HEADER = 24
local SHARD_HEADER = 6
local PROOF = 20

local f = {
    conv = ProtoField.uint32("kcp.conv", "Conversation", base.HEX),
    cmd = ProtoField.uint8("kcp.cmd", "Command", base.DEC, commands),
    frg = ProtoField.uint8("kcp.frg", "Fragments that follow"),
    wnd = ProtoField.uint16("kcp.wnd", "Window"),
    ts = ProtoField.uint32("kcp.ts", "Timestamp"),
    sn = ProtoField.uint32("kcp.sn", "Sequence number"),
    una = ProtoField.uint32("kcp.una", "Unacknowledged"),
    len = ProtoField.uint32("kcp.len", "Length"),
    data = ProtoField.bytes("kcp.data", "Payload"),
    again = ProtoField.bool("kcp.retransmission", "Sent before"),
    first = ProtoField.framenum("kcp.first_frame", "First sent in", base.NONE),
    shard = ProtoField.uint32("kcp.fec.seqid", "Shard"),
    kind = ProtoField.uint16("kcp.fec.type", "Shard is", base.HEX, shards),
    size = ProtoField.uint16("kcp.fec.size", "Shard's length"),
    parity = ProtoField.bytes("kcp.fec.parity", "Parity"),
    proof = ProtoField.string("kcp.proof", "Address proof"),
    cookie = ProtoField.bytes("kcp.proof.cookie", "Cookie"),
}
kcp.fields = f

local malformed = ProtoExpert.new("kcp.malformed", "No segment of KCP's",
    expert.group.MALFORMED, expert.severity.ERROR)
local repeated = ProtoExpert.new("kcp.repeated", "A segment that was sent before",
    expert.group.SEQUENCE, expert.severity.NOTE)
kcp.experts = { malformed, repeated }

kcp.prefs.port = Pref.uint("UDP port", 0, "A port whose datagrams are KCP's whatever they hold; 0 for none")

-- Frames in which segments were first sent, and the stream of each conversation and
-- direction: both belong to one capture.
local sent = {}
local streams = {}

function kcp.init()
    sent = {}
    streams = {}
end

-- Where the segments of a datagram begin: at its first byte, or behind a shard's
-- header. Nothing where it is no datagram of KCP's.
local function is_segments(tvb, at)
    if at >= tvb:len() then return false end
    while at < tvb:len() do
        if tvb:len() - at < HEADER then return false end
        local length = tvb(at + 20, 4):le_uint()
        if not commands[tvb(at + 4, 1):uint()] then return false end
        if length > tvb:len() - at - HEADER then return false end
        at = at + HEADER + length
    end
    return true
end

local function is_shard(tvb)
    if tvb:len() < SHARD_HEADER + 2 then return false end
    local kind = tvb(4, 2):le_uint()
    if kind == 0xf1 then
        local size = tvb(6, 2):le_uint()
        return size == tvb:len() - SHARD_HEADER and is_segments(tvb, SHARD_HEADER + 2)
    end
    return false
end

local function proof_of(tvb)
    if tvb:len() ~= PROOF then return nil end
    return proofs[tvb(0, 4):string()]
end

local function flow(pinfo, conversation)
    return table.concat({
        tostring(pinfo.src), pinfo.src_port, tostring(pinfo.dst), pinfo.dst_port, conversation,
    }, "|")
end

-- Puts the payload of a PUSH into its stream and returns what it completes: a chunk of
-- bytes in order, once for each packet that brings one.
local function in_order(pinfo, conversation, number, payload)
    local key = flow(pinfo, conversation)
    local stream = streams[key]
    if not stream then
        stream = { next = 0, held = {}, brought = {} }
        streams[key] = stream
    end
    local mark = pinfo.number .. ":" .. number
    if not pinfo.visited and stream.brought[mark] == nil then
        stream.brought[mark] = false
        if number >= stream.next and not stream.held[number] then
            stream.held[number] = payload
            local chunk = {}
            while stream.held[stream.next] do
                chunk[#chunk + 1] = stream.held[stream.next]
                stream.held[stream.next] = nil
                stream.next = stream.next + 1
            end
            if #chunk > 0 then stream.brought[mark] = table.concat(chunk) end
        end
    end
    return stream.brought[mark] or nil
end

local function segment(tvb, at, pinfo, tree)
    local length = tvb(at + 20, 4):le_uint()
    local conversation = tvb(at, 4):le_uint()
    local command = tvb(at + 4, 1):uint()
    local number = tvb(at + 12, 4):le_uint()
    local branch = tree:add(kcp, tvb(at, HEADER + length),
        string.format("%s, sequence number %u, %u bytes", commands[command], number, length))
    branch:add_le(f.conv, tvb(at, 4))
    branch:add_le(f.cmd, tvb(at + 4, 1))
    branch:add_le(f.frg, tvb(at + 5, 1))
    branch:add_le(f.wnd, tvb(at + 6, 2))
    branch:add_le(f.ts, tvb(at + 8, 4))
    branch:add_le(f.sn, tvb(at + 12, 4))
    branch:add_le(f.una, tvb(at + 16, 4))
    branch:add_le(f.len, tvb(at + 20, 4))
    if length > 0 then branch:add(f.data, tvb(at + HEADER, length)) end
    if commands[command] == "PUSH" then
        local key = flow(pinfo, conversation) .. "|" .. number
        local first = sent[key]
        if not first then
            sent[key] = pinfo.number
        elseif first ~= pinfo.number then
            branch:add(f.again, true):set_generated()
            branch:add(f.first, first):set_generated()
            branch:add_proto_expert_info(repeated)
        end
    end
    return command, number, length, conversation
end

local function segments(tvb, at, pinfo, tree)
    local said, carried = {}, {}
    while at < tvb:len() do
        local left = tvb:len() - at
        local is_whole = left >= HEADER and commands[tvb(at + 4, 1):uint()] ~= nil
            and tvb(at + 20, 4):le_uint() <= left - HEADER
        if not is_whole then
            tree:add_proto_expert_info(malformed)
            said[#said + 1] = "malformed"
            break
        end
        local command, number, length, conversation = segment(tvb, at, pinfo, tree)
        said[#said + 1] = commands[command] .. " " .. number
        if commands[command] == "PUSH" and length > 0 then
            local bytes = tvb(at + HEADER, length):bytes():raw()
            local chunk = in_order(pinfo, conversation, number, bytes)
            if chunk then carried[#carried + 1] = { conversation, chunk } end
        end
        at = at + HEADER + length
    end
    pinfo.cols.info = table.concat(said, ", ")
    return carried
end

-- The dissector of what a gateway speaks, where it is loaded.
local function gateway()
    local is_there, found = pcall(Dissector.get, "channeld.stream")
    return is_there and found or nil
end

local function dissect(tvb, pinfo, root)
    pinfo.cols.protocol = "KCP"
    local tree = root:add(kcp, tvb())
    local proof = proof_of(tvb)
    if proof then
        tree:add(f.proof, tvb(0, 4), proof)
        tree:add_le(f.conv, tvb(4, 4))
        if proof ~= "hello" then tree:add(f.cookie, tvb(8, 12)) end
        pinfo.cols.info = "Address proof: " .. proof
        return tvb:len()
    end
    local at = 0
    if tvb:len() >= SHARD_HEADER and shards[tvb(4, 2):le_uint()] and not is_segments(tvb, 0) then
        tree:add_le(f.shard, tvb(0, 4))
        tree:add_le(f.kind, tvb(4, 2))
        if tvb(4, 2):le_uint() == 0xf2 then
            if tvb:len() > SHARD_HEADER then
                tree:add(f.parity, tvb(SHARD_HEADER))
            end
            pinfo.cols.info = "Parity, shard " .. tvb(0, 4):le_uint()
            return tvb:len()
        end
        if tvb:len() < SHARD_HEADER + 2 then
            tree:add_proto_expert_info(malformed)
            return tvb:len()
        end
        tree:add_le(f.size, tvb(6, 2))
        at = SHARD_HEADER + 2
    end
    local carried = segments(tvb, at, pinfo, tree)
    local above = #carried > 0 and gateway()
    if above then
        for _, each in ipairs(carried) do
            pinfo.private["channeld.flow"] = flow(pinfo, each[1])
            local bytes = ByteArray.new(each[2], true)
            above:call(bytes:tvb("In order"), pinfo, root)
        end
    end
    return tvb:len()
end

function kcp.dissector(tvb, pinfo, root)
    if tvb:len() == 0 then return 0 end
    return dissect(tvb, pinfo, root)
end

-- Conversations that were seen to be KCP's: parity alone could be anybody's.
local function heuristic(tvb, pinfo, root)
    if tvb:len() < PROOF then return false end
    if not (is_segments(tvb, 0) or is_shard(tvb) or proof_of(tvb)) then return false end
    pinfo.conversation = kcp
    dissect(tvb, pinfo, root)
    return true
end

kcp:register_heuristic("udp", heuristic)

local ports = DissectorTable.get("udp.port")
ports:add_for_decode_as(kcp)
local taken = 0
function kcp.prefs_changed()
    if taken ~= 0 then ports:remove(taken, kcp) end
    taken = kcp.prefs.port
    if taken ~= 0 then ports:add(taken, kcp) end
end
