package data

import "strings"

// The words that stories draw from.
var (
	boys = strings.Fields(`Tom Tim Ben Sam Max Leo Jack Finn Noah Adam Owen Eli Hugo Theo Omar Ravi Luca Oscar Joe Dan
		Kai Milo Amir Felix`)
	girls = strings.Fields(`Lily Mia Anna Sara Lucy Emma Ella Zoe Ruby Rose Ivy Nora Maya Amy Clara Tess Lina Jane Kate
		Nina Leila Olive Hana Daisy`)
	animalNames = strings.Fields(`Pip Dot Bibi Momo Fluff Nut Button Hop Tiny Pepper Coco Bean Sunny Patch Wink Muffin
		Biscuit Clover Peanut Pebble`)
	animals = strings.Fields(`rabbit fox mouse bear duck squirrel hedgehog frog owl pig goat badger mole turtle lamb
		beaver otter penguin`)
	pets     = strings.Fields("cat dog kitten puppy bird rabbit turtle mouse duckling hamster")
	petNames = strings.Fields("Spot Snow Shadow Ginger Socks Lucky Star Smoky Buddy Cookie Rusty Bubbles Misty Poppy")
	colours  = strings.Fields("red blue green yellow purple orange pink white black brown golden silver")
	toys     = lines(`
		ball
		kite
		toy car
		doll
		teddy bear
		drum
		toy boat
		book
		hat
		balloon
		puzzle
		toy train
		robot
		whistle
		toy plane
		basket
		bell
		wagon
		top
		scarf
		umbrella
		bucket`)
	places = lines(`
		at the park
		in the garden
		in the forest
		at the beach
		at the farm
		on the big hill
		by the river
		at the market
		at the playground
		in the school yard
		by the pond
		in the meadow
		in the old barn
		in the village
		by the lake
		under the bridge
		near the mill
		in the orchard`)
	foods = lines(`
		an apple
		a cookie
		a sandwich
		some soup
		a piece of cake
		some bread
		a banana
		some berries
		a carrot
		a pear
		some cheese
		a warm pie
		some nuts
		a bun
		some grapes`)
	happy = strings.Fields("happy glad pleased cheerful joyful")
	sad   = strings.Fields("sad worried upset unhappy gloomy")
)

// lines are the non-empty lines of a text, trimmed.
func lines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}
