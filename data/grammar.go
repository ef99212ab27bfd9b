package data

import (
	"fmt"
	"strings"

	"github.com/chiplm/chiplm/data/splitmix"
)

// A teller expands templates into text. In a template,
//
//	[one|two|three]  is one of the alternatives, each as likely; an alternative may be empty or hold others
//	{word}           is what the word is bound to; {Word} the same with a capital
//	{a word}         puts "a" or "an" before it; {A word} with a capital
//
// What a word is bound to is itself expanded once, when it is bound.
type teller struct {
	random *splitmix.Source
	words  map[string]string
}

// bind gives a word its meaning for the rest of the story.
func (t *teller) bind(word, template string) { t.words[word] = t.expand(template) }

// pick chooses one of the entries.
func (t *teller) pick(entries []string) string { return entries[t.random.Below(uint64(len(entries)))] }

// expand gives the text of a template. Templates are our own and are all expanded by a test, so a fault in one panics.
func (t *teller) expand(template string) string {
	var out strings.Builder
	for template != "" {
		i := strings.IndexAny(template, "[{")
		if i < 0 {
			out.WriteString(template)
			break
		}
		out.WriteString(template[:i])
		if template[i] == '{' {
			end := strings.IndexByte(template[i:], '}')
			if end < 0 {
				panic(fmt.Sprintf("data: unclosed { in %q", template))
			}
			out.WriteString(t.word(template[i+1 : i+end]))
			template = template[i+end+1:]
			continue
		}
		alternatives, rest := choices(template[i:])
		out.WriteString(t.expand(t.pick(alternatives)))
		template = rest
	}
	return out.String()
}

// word is the text of what stands between braces.
func (t *teller) word(name string) string {
	article, noun, ok := strings.Cut(name, " ")
	if !ok {
		noun = name
	}
	value, bound := t.words[strings.ToLower(noun[:1])+noun[1:]]
	if !bound {
		panic(fmt.Sprintf("data: the word %q is not bound", name))
	}
	switch {
	case ok && strings.IndexByte("aeiouAEIOU", value[0]) >= 0:
		return article + "n " + value
	case ok:
		return article + " " + value
	case noun[0] >= 'A' && noun[0] <= 'Z':
		return strings.ToUpper(value[:1]) + value[1:]
	}
	return value
}

// choices splits a template that starts with a bracket into the alternatives and what follows the closing bracket.
func choices(template string) (alternatives []string, rest string) {
	depth, begin := 0, 1
	for i := 0; i < len(template); i++ {
		switch template[i] {
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return append(alternatives, template[begin:i]), template[i+1:]
			}
		case '|':
			if depth == 1 {
				alternatives = append(alternatives, template[begin:i])
				begin = i + 1
			}
		}
	}
	panic(fmt.Sprintf("data: unclosed [ in %q", template))
}

// tell writes one story: the cast is drawn first, then the plot, then the plot's own words, then its paragraphs.
func (t *teller) tell() string {
	t.cast()
	p := &plots[t.random.Below(uint64(len(plots)))]
	for _, b := range p.bind {
		t.bind(b[0], b[1])
	}
	paragraphs := make([]string, 0, len(p.text))
	for _, template := range p.text {
		// Empty alternatives leave doubled or trailing spaces behind.
		if text := strings.Join(strings.Fields(t.expand(template)), " "); text != "" {
			paragraphs = append(paragraphs, text)
		}
	}
	return strings.Join(paragraphs, "\n")
}

// cast binds the words that every plot may use: hero and friend with their pronouns, a grown-up, a thing, a place and
// the rest.
func (t *teller) cast() {
	clear(t.words)
	hero := t.person("")
	for friend := t.person("f"); friend == hero; {
		friend = t.person("f")
	}
	t.bind("grownup", "[[Mom|Dad]|[Mom|Dad|Grandma|Grandpa|Aunt Sue|Uncle Bob]]")
	t.bind("colour", t.pick(colours))
	t.bind("toy", t.pick(toys))
	t.bind("thing", "[{colour}|{colour}|[big|small|shiny|soft|old|new|tiny|round]] {toy}")
	at := t.pick(places)
	_, place, _ := strings.Cut(at, " ")
	t.bind("place", place)
	t.bind("atplace", at) // with its preposition
	t.bind("food", t.pick(foods))
	t.bind("pet", t.pick(pets))
	t.bind("petname", t.pick(petNames))
	t.bind("day", "[sunny|cold|warm|windy|bright|cloudy|fine|quiet] [day|morning|afternoon]")
	t.bind("happy", t.pick(happy))
	t.bind("sad", t.pick(sad))
}

// person binds a character: prefix+"name", "who" (with an article in front), "he", "him", "his", and gives the name.
func (t *teller) person(prefix string) string {
	names, pronouns, whos := boys, [3]string{"he", "him", "his"}, "[little|young|small|[kind|clever|brave|quiet|funny]] boy"
	if t.random.Below(2) == 0 {
		names, pronouns, whos = girls, [3]string{"she", "her", "her"}, "[little|young|small|[kind|clever|brave|quiet|funny]] girl"
	}
	if t.random.Below(4) == 0 {
		names, whos = animalNames, "[little|young|small|[kind|clever|brave|quiet|funny]] "+t.pick(animals)
	}
	name := t.pick(names)
	t.bind(prefix+"name", name)
	t.bind(prefix+"who", whos)
	for i, word := range []string{"he", "him", "his"} {
		t.bind(prefix+word, pronouns[i])
	}
	return name
}
