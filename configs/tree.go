package configs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// A model file needs a small part of YAML: keys with a value or with more keys. The limits below keep the rest of the
// language, which is where hostile files live, away from the parser.
const (
	maxBytes  = 64 << 10
	maxNested = 8
)

// dialect is the part of YAML that a kind of file may use.
type dialect struct {
	file    string // what messages call such a file
	lists   bool
	extends bool // it may inherit from another
}

var modelFile = dialect{file: "model file", extends: true}

// node is a mapping (entries, in the order of the file), a list (items) or a scalar (text).
type node struct {
	at      position
	mapping bool
	entries []entry
	list    bool // only in dialects with lists
	items   []*node
	text    string
	quoted  bool // written in quotes, so text and never a number
	null    bool
}

type entry struct {
	key   string
	at    position // of the key
	value *node
}

func (n *node) get(key string) *node {
	for _, e := range n.entries {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

func (n *node) remove(key string) {
	kept := n.entries[:0]
	for _, e := range n.entries {
		if e.key != key {
			kept = append(kept, e)
		}
	}
	n.entries = kept
}

// merge lays over on top of n: mappings key by key, everything else replaced.
func (n *node) merge(over *node) {
	for _, e := range over.entries {
		i := 0
		for i < len(n.entries) && n.entries[i].key != e.key {
			i++
		}
		switch {
		case i == len(n.entries):
			n.entries = append(n.entries, e)
		case n.entries[i].value.mapping && e.value.mapping:
			n.entries[i].value.merge(e.value)
		default:
			n.entries[i] = e
		}
	}
}

// parseTree reads the YAML text of a model file, or a value of one, into a tree. at gives the source and the rank for positions. The text of a --set argument
// is the value of key and its positions keep line 0; a file has no key.
func parseTree(at position, src []byte, key string) (root *node, err error) {
	return modelFile.parse(at, src, key)
}

func (d dialect) parse(at position, src []byte, key string) (root *node, err error) {
	text, err := d.cleanText(at, src)
	if err != nil {
		return nil, err
	}
	// The YAML parser has had panics on malformed input; here they are errors like any other.
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, at.errorf("", "cannot be read as YAML")
		}
	}()
	place := func(t *token.Token) position {
		p := at
		if t != nil && t.Position != nil && key == "" {
			p.line, p.column = t.Position.Line, t.Position.Column
		}
		return p
	}
	tokens := lexer.Tokenize(text)
	depth := 0
	for _, t := range tokens {
		refuse := ""
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			refuse = "anchors and aliases are not part of a " + d.file + "; write the value out"
			if d.extends && key == "" { // an argument cannot name another file
				refuse += ", or use extends: other.yaml"
			}
		case token.TagType, token.DirectiveType:
			refuse = "YAML tags and directives are not part of a " + d.file + "; remove this"
		case token.SequenceStartType, token.SequenceEntryType:
			switch {
			case !d.lists:
				refuse = "no key of a " + d.file + " takes a list; write key: value"
			case t.Type == token.SequenceStartType:
				depth++
			}
		case token.MappingKeyType:
			refuse = "keys of the form '? key' are not part of a " + d.file + "; write key: value"
		case token.LiteralType, token.FoldedType:
			refuse = "text over several lines is not part of a " + d.file + "; write key: value on one line"
		case token.InvalidType:
			refuse = "not valid YAML: " + t.Error
			if strings.Contains(t.Origin+t.Value, "\t") { // the lexer's words do not name the tab
				refuse = "a tab, which YAML does not take for indentation; indent with spaces"
			}
		case token.StringType:
			// The parser would blame the line on which the value starts.
			if down, column := continuation(t.Origin); down > 0 {
				p := place(t)
				if p.line > 0 {
					p.line, p.column = p.line+down, column
				}
				return nil, p.errorf("", "this line is indented as if it went on with the value above; line its key up with the other keys of its section")
			}
		case token.MappingValueType:
			if t.Prev == nil || t.Prev.Type == token.CommentType || isPlain(t.Prev) && t.Prev.Position.Line != t.Position.Line {
				refuse = "a colon without a key; write key: value on one line"
			}
		case token.MappingStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		}
		if depth > maxNested {
			refuse = fmt.Sprintf("more than %d nested braces; a %s nests fewer", maxNested, d.file)
		}
		if refuse != "" {
			return nil, place(t).errorf("", "%s", refuse)
		}
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			return nil, place(syntax.GetToken()).errorf("", "not valid YAML: %s", syntax.GetMessage())
		}
		return nil, at.errorf("", "not valid YAML")
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil {
			continue
		}
		if body != nil {
			return nil, place(doc.Body.GetToken()).errorf("", "a second YAML document; a %s holds one", d.file)
		}
		body = doc.Body
	}
	if body == nil {
		return &node{at: at, null: true}, nil
	}
	return (&converter{d, place}).convert(body, key, 0)
}

// continuation says where a plain value goes on after its first line: how many lines further down, and in which column.
// It gives 0 for a value on one line. origin is the value's text in the file with the space around it.
func continuation(origin string) (down, column int) {
	_, after, more := strings.Cut(strings.TrimSpace(origin), "\n")
	for down = 1; more; down++ {
		var line string
		line, after, more = strings.Cut(after, "\n")
		if text := strings.TrimLeft(line, " \t"); text != "" {
			return down, len(line) - len(text) + 1
		}
	}
	return 0, 0
}

func isPlain(t *token.Token) bool {
	return t.Type != token.SingleQuoteType && t.Type != token.DoubleQuoteType
}

func (d dialect) tooLarge(at position) *Error {
	return at.errorf("", "larger than %d KiB, so not a %s; check the path", maxBytes>>10, d.file)
}

// cleanText checks that src is text that YAML could be in, and gives it with line ends as \n and without a
// byte-order mark.
func (d dialect) cleanText(at position, src []byte) (string, error) {
	if len(src) > maxBytes {
		return "", d.tooLarge(at)
	}
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	line := 1
	for i := 0; i < len(src); {
		r, n := utf8.DecodeRune(src[i:])
		p := at
		p.line = line
		switch {
		case r == 0:
			return "", p.errorf("", "a zero byte, so not a text file in UTF-8; check the path")
		case r == utf8.RuneError && n == 1:
			return "", p.errorf("", "not UTF-8 text; save the file as UTF-8")
		case r == '\n':
			line++
		case r < ' ' && r != '\t' || r == 0x7f:
			return "", p.errorf("", "control character %U; remove it", r)
		}
		i += n
	}
	return string(src), nil
}

// converter turns the parser's nodes into ours.
type converter struct {
	dialect
	place func(*token.Token) position
}

// convert converts a node. key is the dotted key so far, for messages.
func (c *converter) convert(n ast.Node, key string, depth int) (*node, error) {
	at := c.place(n.GetToken())
	if depth > maxNested {
		return nil, at.errorf(key, "nested deeper than a %s goes", c.file)
	}
	switch v := n.(type) {
	case *ast.MappingNode:
		if v.Start != nil && v.IsFlowStyle {
			at = c.place(v.Start)
		}
		return c.convertMapping(v.Values, at, key, depth)
	case *ast.MappingValueNode:
		return c.convertMapping([]*ast.MappingValueNode{v}, at, key, depth)
	case *ast.SequenceNode: // only where the dialect lets its tokens through
		return c.convertList(v, at, key, depth)
	case *ast.NullNode:
		return &node{at: at, null: true}, nil
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		t := n.GetToken()
		quoted := t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
		return &node{at: at, text: t.Value, quoted: quoted}, nil
	}
	return nil, at.errorf(key, "this form of YAML is not part of a %s; write key: value", c.file)
}

func (c *converter) convertList(l *ast.SequenceNode, at position, key string, depth int) (*node, error) {
	out := &node{at: at, list: true}
	for i, v := range l.Values {
		item := fmt.Sprintf("%s[%d]", key, i)
		if v == nil {
			return nil, at.errorf(item, "has no value; give one or remove it")
		}
		n, err := c.convert(v, item, depth+1)
		if err != nil {
			return nil, err
		}
		out.items = append(out.items, n)
	}
	return out, nil
}

func (c *converter) convertMapping(values []*ast.MappingValueNode, at position, key string, depth int) (*node, error) {
	m := &node{at: at, mapping: true}
	first := map[string]position{}
	for _, v := range values {
		t := v.Key.GetToken()
		p := c.place(t)
		if t == nil || v.Key.Type() == ast.NullType {
			return nil, p.errorf(key, "a value without a key")
		}
		name, full := t.Value, join(key, t.Value)
		if before, ok := first[name]; ok {
			where := ""
			if before.line > 0 {
				where = fmt.Sprintf(", first on line %d", before.line)
			}
			return nil, p.errorf(full, "given twice%s; keep one", where)
		}
		first[name] = p
		if v.Value == nil {
			return nil, p.errorf(full, "has no value; give one or remove the key")
		}
		value, err := c.convert(v.Value, full, depth+1)
		if err != nil {
			return nil, err
		}
		m.entries = append(m.entries, entry{key: name, at: p, value: value})
	}
	return m, nil
}

// join makes a dotted key.
func join(section, key string) string {
	if r := []rune(key); len(r) > 60 {
		key = string(r[:60]) + "..."
	}
	key = strings.ToValidUTF8(key, "?")
	if section == "" {
		return key
	}
	return section + "." + key
}
