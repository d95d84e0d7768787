# A game server on Godot 3: a target that moves, told to every client twenty times a second.
extends SceneTree

const PORT = 4000
const STEP = 0.05

var peer = NetworkedMultiplayerENet.new()
var clock = 0.0
var due = 0.0
var step = 0

func _init():
	Engine.target_fps = 100
	if peer.create_server(PORT, 32) != OK:
		printerr("cannot listen at port ", PORT)
		quit(1)

func _idle(delta):
	clock += delta
	peer.poll()
	while peer.get_available_packet_count() > 0:
		peer.get_packet()
	if clock >= due and peer.get_connection_status() == NetworkedMultiplayerPeer.CONNECTION_CONNECTED:
		due += STEP
		step += 1
		peer.set_target_peer(0)
		peer.set_transfer_mode(NetworkedMultiplayerPeer.TRANSFER_MODE_UNRELIABLE)
		peer.put_packet(var2bytes([step, sin(clock) * 100.0]))
	return false
