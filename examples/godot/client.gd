# A client on Godot 3: says when the target has stood still for a tenth of a second or longer.
extends SceneTree

const PORT = 4000
const PLAY = 30.0
const STILL = 0.1

var peer = NetworkedMultiplayerENet.new()
var clock = 0.0
var heard = -1.0
var step = 0
var freezes = 0

func _init():
	Engine.target_fps = 100
	if peer.create_client(OS.get_environment("LAGOMETER_SERVER"), PORT) != OK:
		printerr("cannot connect")
		quit(1)

func _idle(delta):
	clock += delta
	peer.poll()
	while peer.get_available_packet_count() > 0:
		var state = bytes2var(peer.get_packet())
		if heard >= 0 and clock - heard >= STILL:
			freezes += 1
			print("the target stood still for %.0f ms, %d steps missed" % [(clock - heard) * 1000, state[0] - step - 1])
		heard = clock
		step = state[0]
	if clock >= PLAY:
		print("%d freezes in %.0f s, %d steps" % [freezes, PLAY, step])
		quit(0)
	return false
