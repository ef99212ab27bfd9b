package data

// A plot is a frame of story: its own words, bound in order, and a template for each paragraph.
type plot struct {
	bind [][2]string
	text []string
}

const (
	opening = "[Once upon a time, there was|Once there was|There once was|There was] {a who} [named|called] {name}. "
	oneDay  = "[One|One|On a] {day}, "
)

var plots = []plot{
	{ // lost and found
		bind: [][2]string{
			{"first", "[under the bed|behind the door|in the kitchen|under the table|behind the chair]"},
			{"second", "[in the garden|near the gate|behind the tree|on the stairs|next to the well]"},
			{"third", "[under a bush|in a box|behind a big stone|in the tall grass|inside an old boot]"},
		},
		text: []string{
			opening + "{Name} had {a thing}. {He} [loved|liked] the {toy} very much and took it [everywhere|to bed every night|along on every walk].",
			oneDay + "{name} could not find the {toy}. {He} looked {first}. It was not there. {He} looked {second}. It was not there either. {Name} [felt|was] very {sad}[ and began to cry|].",
			"{His} friend {fname} [came by|heard {him}|saw {him}] and asked, \"What is wrong, {name}?\" \"I lost my {toy},\" said {name}. \"[Do not worry|Do not cry|Do not be sad],\" said {fname}. \"I will help you.\"",
			"They looked [together|and looked|everywhere]. Then {fname} saw something {colour} {third}. \"[Look|Here|Come and see]!\" {fhe} [called|shouted]. \"Is this your {toy}?\"",
			"It was! {Name} was so {happy}. {He} [hugged|thanked] {fname} and said, \"You are a good friend.\" [From that day on, {name} always put the {toy} back in its place.|They played with the {toy} until it was dark.|Looking for something is easier with a friend.]",
		},
	},
	{ // sharing
		bind: [][2]string{{"game", "[take turns|play together|each have it for a while|share it]"}},
		text: []string{
			opening + "{He} had a friend named {fname}. They [often played|always played|liked to play] {atplace}.",
			oneDay + "they found {a thing} {atplace}. \"[I saw it first|It is mine|I want it]!\" said {name}. \"No, [I saw it first|it is mine|I want it]!\" said {fname}. They both pulled at the {toy}. [They were very angry.|Neither let go.|It almost broke.]",
			"{Grownup} [came|saw them] and said, \"[Stop|Please stop|Wait], you two. If you pull, the {toy} will break. Why do you not {game}?\"",
			"{Name} looked at {fname}. {Fname} looked at {name}. \"I am sorry,\" said {name}. \"[You can have it first|You go first|Let us {game}].\" \"[Thank you|I am sorry too],\" said {fname}.",
			"So they did. It was [much more|so much|a lot of] fun. [That day they learned that sharing makes everyone happy.|They learned to share, and they stayed best friends.|In the evening they were both tired but happy.]",
		},
	},
	{ // facing a fear
		bind: [][2]string{
			{"fear", "[the dark|thunder|deep water|the tall slide|big dogs|loud noises|the old cellar|spiders]"},
			{"trick", "[hum a tune|count to three|take a deep breath|sing a song|think of something nice|close your eyes for a moment]"},
		},
		text: []string{
			opening + "{He} liked to [play|run|sing] {atplace}, but {he} was afraid of {fear}. [Nobody knew about it.|It made {him} feel very small.|{He} did not tell anyone.]",
			oneDay + "{name} had to face {fear}. {His} [legs|hands] [shook|felt weak]. \"I can not do it,\" {he} said.",
			"{Fname} [sat down next to {him}|stood beside {him}|took a step closer]. \"I was afraid of {fear} too,\" {fhe} said. \"When I am scared, I {trick}. [You can try it|Do you want to try it|Try it too]!\"",
			"{Name} [tried it|nodded and tried it]. [Slowly|Step by step|Bit by bit], the fear became [smaller|smaller and smaller]. \"I did it!\" {he} [shouted|cried|called]. \"I am not afraid of {fear} any more!\"",
			"{Fname} [clapped|smiled|cheered]. \"[You are very brave|I knew you could do it],\" {fhe} said. [Being brave does not mean that you are never afraid.|That night, {name} slept very well.|After that, {name} helped others who were scared.]",
		},
	},
	{ // telling the truth
		bind: [][2]string{{"broken", "[vase|cup|lamp|window|plate|mirror|clock|flower pot|jug]"}, {"how", "[ran through the house|kicked a ball inside|jumped on the chair|danced around the room|reached for {food}]"}},
		text: []string{
			opening + "{He} lived with {grownup} in a [little|small|cosy] house near {place}.",
			oneDay + "{name} {how}. Crash! The {colour} {broken} fell and broke. {Name} was very [sad|scared|worried]. \"[{Grownup} will be angry|What should I do|Oh no],\" {he} thought. {He} [hid the pieces under the bed|pushed the pieces behind the door|put the pieces in a box].",
			"Soon {grownup} came in and asked, \"Where is my {broken}?\" {Name} looked at the floor. {He} wanted to say that [the wind|the cat|a bird] did it. But [that was not true|that would be a lie|it felt wrong].",
			"\"I broke it,\" said {name}. \"I {how} and it fell. I am [very|so] sorry.\" {Grownup} [was quiet for a moment|looked at {him}|sat down] and then [smiled|gave {him} a hug]. \"[Thank you for telling the truth|I am glad that you told me],\" said {grownup}. \"[A {broken} can be replaced|We can fix it together|It was only a {broken}].\"",
			"They [cleaned up|swept the floor|picked up the pieces] together. {Name} felt {happy} again. [It is always better to tell the truth.|{He} never hid anything from {grownup} again.|And from then on, {he} was more careful.]",
		},
	},
	{ // a new friend
		bind: [][2]string{{"game", "[hide and seek|catch|tag|a jumping game|a singing game|pirates]"}},
		text: []string{
			opening + "{He} went to {place} [every day|almost every day|after breakfast].",
			oneDay + "{name} saw {a fwho} who sat alone. {Fhe} looked [sad|lonely|shy]. {Name} [walked over|went closer] and said, \"Hello, I am {name}. What is your name?\" \"I am {fname},\" {fhe} said [softly|in a small voice|quietly]. \"I am new here and I do not know anyone.\"",
			"\"Now you know me!\" said {name}. \"Do you want to play {game}?\" {Fname} [smiled|nodded|jumped up]. \"Yes, [please|I would love to]!\"",
			"They played {game} [all day|until the sun went down|for a long time]. Then they shared {food}. \"[This was the best day|I am so {happy} that you asked me],\" said {fname}.",
			"{Name} and {fname} [became best friends|met {atplace} every day|were never lonely again]. [A kind word can make a new friend.|It only takes one hello to make a friend.|]",
		},
	},
	{ // a lost pet
		bind: [][2]string{{"hurt", "[wet and cold|hungry|lost|tired|very thin]"}, {"bed", "[box|basket|little bed|nest]"}},
		text: []string{
			opening + "{He} loved animals [very much|more than anything].",
			oneDay + "{name} heard a [small|soft|strange] sound near {place}. {He} looked [around|behind a tree|under a bush] and saw a [little|small] {colour} {pet}. The {pet} was {hurt}.",
			"\"[Poor little thing|Oh, you poor {pet}],\" said {name}. \"I will [help you|take care of you].\" {He} gave it {food} and carried it home. {Grownup} [made|found] a [warm|soft] {bed} for it.",
			"[After a few days|Soon|The next week], the {pet} was well again. It [ran|played|hopped] around the house. {Name} [called|named] it {petname}. \"Can {petname} stay [with us|here], {grownup}?\" {he} asked.",
			"\"[Yes|Of course],\" said {grownup}. \"[You took good care of it|You have been very kind|It needs a friend like you].\" {Name} was so {happy}. [{Petname} slept next to {him} every night.|{Name} and {petname} were friends for ever.|If you are kind to others, they will love you back.]",
		},
	},
	{ // not listening
		bind: [][2]string{
			{"danger", "[the deep water|the dark cave|the high wall|the thin ice|the busy road|the tall tree]"},
			{"trouble", "[slipped and got stuck|fell and hurt {his} knee|could not find the way back|could not get down again]"},
		},
		text: []string{
			opening + "\"You may play {atplace},\" said {grownup}, \"but do not go near {danger}.\" \"[Yes|I promise], {grownup},\" said {name}.",
			oneDay + "{name} saw {a colour} [butterfly|bird|ball|leaf|feather] near {danger}. {He} [forgot what {grownup} had said|did not listen|wanted to see it]. {He} went closer and closer. Then {he} {trouble}.",
			"\"Help! Help!\" {name} [cried|shouted|called]. [Nobody came.|For a long time it was quiet.|It was getting late.] At last {fname} heard {him} and ran to get {grownup}.",
			"{Grownup} came [quickly|as fast as the wind] and [pulled {him} out|carried {him} home|brought {him} back]. \"I am sorry that I did not listen,\" said {name}. \"I was so [scared|afraid].\" \"I am [glad|happy] that you are safe,\" said {grownup}.",
			"{Name} thanked {fname} and gave {fhim} {food}. [From then on, {he} always listened to {grownup}.|{He} learned that rules keep us safe.|{He} never went near {danger} again.]",
		},
	},
	{ // practice
		bind: [][2]string{
			{"skill", "[ride a bike|swim|whistle|fly a kite|tie a bow|skate|climb a rope|bake bread|play the drum|juggle]"},
			{"fail", "[it did not work|it went wrong|nothing went right]"},
		},
		text: []string{
			opening + "More than anything, {he} wanted to learn to {skill}. [{Fname} could do it very well.|All the others could do it already.|It looked so easy.]",
			oneDay + "{name} tried to {skill}. But {fail}. {He} tried again, and again {fail}. \"[I will never learn it|It is too hard|I give up],\" {he} said[ and sat down| and was {sad}|].",
			"{Grownup} [heard it|sat down next to {him}] and said, \"[Nobody can do everything at once|Every day a little better|I needed a long time to learn it too]. Try a little every day.\"",
			"So {name} tried on [Monday|Tuesday], and {fail}. {He} tried on [Wednesday|Thursday], and it went a little better. [On Saturday|At the end of the week|On Sunday], {he} could {skill}!",
			"\"Look at me!\" {he} [called|shouted]. {Grownup} and {fname} clapped. {Name} was very {happy}. [If you keep trying, you can do it.|Now {he} could show it to others.|\"I am proud of you,\" said {grownup}.]",
		},
	},
	{ // a present
		bind: [][2]string{
			{"gift", "[a card|a necklace|a picture|a little boat|a cake|a flower crown|a mobile|a paper star]"},
			{"from", "[leaves and flowers|paper and string|small shells|things that {he} found {atplace}|what {he} had at home]"},
		},
		text: []string{
			opening + "Soon it was {grownup}'s birthday. {Name} wanted to give {grownup} [something special|a nice present], but {he} had no money.",
			"{He} asked {fname}, \"What can I do?\" {Fname} thought [hard|for a while]. \"You could make something,\" {fhe} said. \"[That is a great idea|Yes, I will]!\" said {name}.",
			oneDay + "they went to {place}. They [worked|looked] for hours. {Name} made {gift} from {from}. It was {colour} and very pretty. [At first it was a little crooked, but {name} did not give up.|{Fname} helped {him} with the hard part.|]",
			"On the birthday, {name} said, \"[Happy birthday|This is for you], {grownup}! I made it myself.\" {Grownup}'s eyes [shone|became big]. \"This is the [best|nicest] present [of all|I ever had],\" said {grownup}, \"because you made it [for me|with love].\"",
			"They all ate {food} and [laughed|sang] together. {Name} was {happy}. [The best presents come from the heart.|A present does not need to cost much.|]",
		},
	},
	{ // rain
		bind: [][2]string{
			{"plan", "[fly a kite|have a picnic|swim|play football|ride bikes|pick flowers]"},
			{"inside", "[built a tent from blankets|baked cookies|told stories|painted pictures|made paper boats|danced to music]"},
		},
		text: []string{
			opening + "{He} and {fname} wanted to {plan} {atplace}. [They had waited all week.|They were very excited.|They got up early.]",
			"But then [dark|grey|big] clouds came, and it began to rain. [Drip, drop, drip, drop.|It rained and rained.] \"[Oh no|This is not fair]!\" said {name}. \"Now we can not {plan}.\" Both were {sad}.",
			"{Grownup} looked out of the window and said, \"We can have fun [inside|here] too.\" So they {inside}. [{Name} laughed so much that {his} belly hurt.|They forgot all about the rain.|It was warm and cosy.]",
			"Later, the rain stopped. {Fname} ran to the door. \"Look, a rainbow!\" {fhe} [called|shouted]. They saw red, yellow, green and blue in the sky. {Name} jumped [into a puddle|over a puddle]. Splash!",
			"\"[This was a good day after all|I like rain now],\" said {name}. [Sometimes a bad start has a good end.|And the next day they could {plan} at last.|They went home wet and happy.]",
		},
	},
	{ // growing something
		bind: [][2]string{
			{"plant", "[flower|sunflower|bean|tomato plant|apple tree|pumpkin|strawberry plant]"},
			{"wait", "[Nothing happened|There was only brown earth|There was nothing to see]"},
		},
		text: []string{
			opening + "{Grownup} gave {him} a [tiny|small] seed. \"What is it?\" asked {name}. \"[Wait and see|It is a secret|Plant it and you will see],\" said {grownup}.",
			"{Name} put the seed in the ground near {place}. Every day {he} gave it water. {Wait}. \"[Why does it not grow|When will it grow]?\" {he} asked {fname}. \"[You must be patient|Give it time|Good things take time],\" said {fname}.",
			"{Name} waited. The sun shone, and the rain fell. Then, [one|on a] {day}, {he} saw something green. It was a [little|tiny] leaf! {Name} [danced|jumped] with joy.",
			"The leaf grew and grew. It became a [big|tall|lovely] {plant}. Everybody came to see it. \"[You took good care of it|How big it is|It is so pretty],\" said {fname}.",
			"{Name} was {happy}. {He} gave {fname} a seed, so that {fhe} could grow {a plant} too. [Patience brings good things.|Soon {place} was full of green.|They watered it together.]",
		},
	},
	{ // a race and a boast
		bind: [][2]string{
			{"fast", "[ran as fast as the wind|was the fastest of all|could run faster than the others]"},
			{"stop", "[stopped to take a nap|stopped to eat {food}|looked at the clouds|stopped to look at a butterfly]"},
		},
		text: []string{
			opening + "{Name} {fast}. \"Nobody can beat me!\" {he} said [every day|to everyone|again and again]. {Fname} was slow, but {fhe} never gave up.",
			oneDay + "there was a race {atplace}. The prize was {a thing}. \"I will win it,\" said {name}. \"[You are too slow|You can not win], {fname}.\" {Fname} only [smiled|said, \"I will do my best\"].",
			"[One, two, three, go!|{Grownup} shouted, \"Go!\"] {Name} was far ahead. \"I have a lot of time,\" {he} thought, and {stop}. {Fname} walked on, step by step.",
			"When {name} looked up, {fname} was near the end. {Name} ran and ran, but it was too late. {Fname} won the {toy}! [Everybody cheered.|\"Hooray for {fname}!\" they all called.]",
			"{Name} was {sad} at first. Then {he} went to {fname} and said, \"[You did very well|I should not have said that you are slow]. I am sorry.\" {Fname} let {him} play with the {toy}, and both were {happy}. [Do not boast, and never give up.|Slow and steady wins the race.|]",
		},
	},
	{ // a wish
		bind: [][2]string{
			{"magic", "[star|stone|lamp|shell|feather|coin|key|fish]"},
			{"wish", "[to be very tall|to have all the cookies in the world|that it was always night|to fly like a bird|that everything was {colour}|to be as small as an ant]"},
		},
		text: []string{
			opening + oneDay + "{he} found a [shiny|bright|strange] {magic} {atplace}. \"I am a magic {magic},\" it said. \"You [have|get] one wish.\"",
			"{Name} thought and thought. Then {he} wished {wish}. [Poof!|Puff!|Ping!] The wish came true. [At first it was great fun.|{Name} laughed with joy.|\"This is wonderful!\" {he} said.]",
			"But soon {name} was {sad}. {He} could not play with {fname} any more. {He} missed {grownup} and [{his} warm bed|the nice days|{his} {toy}]. \"I do not want this,\" said {name}. \"[Please help me.|Can you take it back?]\"",
			"\"[Be careful what you wish for|A wish needs a wise heart],\" said the {magic}. It [shone|glowed|hummed] {colour}, and everything was as before. {Fname} came running. \"Where were you?\" {fhe} asked. \"[I missed you|I was looking for you].\"",
			"{Name} hugged {fname}. \"I have all that I need,\" {he} said, and {he} was {happy}. [They put the {magic} back where it came from.|They went home and ate {food}.|]",
		},
	},
	{ // tidying up
		bind: [][2]string{{"messy", "[on the floor|under the bed|on every chair|all over the room]"}, {"missing", "[shoe|sock|coat|cap|bag]"}},
		text: []string{
			opening + "{His} room was always a mess. There were toys {messy}. \"Please tidy up,\" said {grownup}. \"[Later|Not now|Tomorrow],\" said {name}.",
			oneDay + "{fname} came and said, \"Let us go to {place}! [Hurry up|Come quickly]!\" {Name} was {happy}. But {he} could not find {his} {missing}. {He} looked and looked. {He} stepped on the {toy}. \"Ouch!\"",
			"\"I can not go without my {missing},\" said {name}. {He} was {sad}. \"[If we tidy up, we will find it|Come, I will help you],\" said {fname}.",
			"They put the books on the shelf and the toys in the box. It [did not take long|was almost like a game]. Under {a thing}, there was the {missing}!",
			"They ran to {place} and played [all day|until the evening]. When {name} came home, {his} room was still tidy. \"[How nice it looks|Well done]!\" said {grownup}. [Now {name} tidies up every day.|A tidy room saves a lot of time.|]",
		},
	},
	{ // helping a neighbour
		bind: [][2]string{
			{"old", "[Mr Brown|Mrs Green|Mr Hill|Mrs Bell|old Mr Wood|old Mrs Lane]"},
			{"work", "[carry the bags|rake the leaves|water the flowers|paint the fence|feed the hens|clear the snow]"},
		},
		text: []string{
			opening + "Next to {name} lived {old}[, who was all alone|, who walked with a stick|].",
			oneDay + "{name} and {fname} wanted to play {atplace}. On the way they saw {old}. {Old} tried to {work}, but it was too [hard|heavy|much]. \"[Let us help|We should help],\" said {name}. \"But [we will be late|then we can not play]!\" said {fname}.",
			"{Name} thought about it. \"We can play [later|tomorrow],\" {he} said. So they both helped to {work}. It was hard, and they got [tired|hungry|hot]. But [they sang a song|they made jokes], and soon it was done.",
			"{Old} was so {happy}. \"[What kind children|You are very kind|Thank you, my dears],\" said {old}, and gave them {food} and {a thing}. \"[It was mine when I was small|Now it is yours].\"",
			"{Fname} smiled. \"[You were right|I am glad that we helped],\" {fhe} said to {name}. They went to {place} with the {toy} and had [lots of fun|the best time]. [Helping others makes you happy too.|From then on, they helped {old} every week.|]",
		},
	},
	{ // going to sleep
		bind: [][2]string{
			{"noise", "[a creak|a soft tap|a long howl|a scratching sound|a whisper]"},
			{"really", "[the wind in the trees|a branch at the window|{petname} the {pet}|the old clock|an owl]"},
		},
		text: []string{
			opening + "It was late, but {he} could not sleep. {He} [counted sheep|turned left and right|looked at the moon], but it did not help.",
			"Then {name} heard {noise}. \"What was that?\" {he} whispered. {He} pulled the [blanket|covers] over {his} head and held {his} {toy} tight. There it was again! {Name} was afraid, so {he} called {grownup}.",
			"{Grownup} came with a [small|little] light. \"Let us look together,\" said {grownup}. They looked [under the bed|behind the curtain|out of the window]. It was only {really}!",
			"{Name} laughed. \"[That was all|I thought it was a monster]!\" {he} said. {Grownup} sat down and told {him} a story about {a fwho} named {fname} who [sailed to the moon|lived {atplace}|found {a thing}|rode on a cloud].",
			"Before the story was over, {name} was asleep. {He} had a [good|happy|funny] dream about {place}. [Good night, {name}.|And {grownup} turned out the light.|The moon smiled down on {him}.]",
		},
	},
}
