package sim

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// listing writes a program's instructions, one a line.
func listing(p *Program) string {
	var lines []string
	for _, i := range p.Instructions() {
		lines = append(lines, i.String())
	}
	return strings.Join(lines, "; ")
}

func TestParseSyntax(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"comments", "nop // a\n# line\nnop /* b\n c */ nop.n\nnop # d\n", "nop; nop; nop.n; nop"},
		{"statements on a line", "1: nop; 2: nop.n; j 1b", "nop; nop.n; j 1b"},
		{"upper case", "ADD a2, A3, sp\nEE.ZERO.Q Q3", "add a2, A3, sp; ee.zero.q Q3"},
		{"underscore", "_addi a2, a3, 1", "addi a2, a3, 1"},
		{"define", "#define N 4\n#define M (N*2)\naddi a2, a3, M+1", "addi a2, a3, 9"},
		{"no define within a word", "#define s8 s16\nee.vmax.s8 q0, q1, q2", "ee.vmax.s8 q0, q1, q2"},
		{"undefine", "#define N 4\n#undef N\n.set N, 5\nmovi a2, N", "movi a2, 5"},
		{"set", ".set N, 1 << 4\n.equ M, N - 1\nK = M + 0x10\nmovi a2, K", "movi a2, 31"},
		{"set again", ".set N, 1\nmovi a2, N\n.set N, 2\nmovi a2, N", "movi a2, 1; movi a2, 2"},
		{"precedence", "movi a2, 1 + 2 * 3 << 1\nmovi a3, -(4 - 6) | 1\nmovi a4, 7 & 3 + 1\nmovi a5, 'a'\nmovi a6, ~0", "movi a2, 13; movi a3, 3; movi a4, 4; movi a5, 97; movi a6, -1"},
		{"macro", ".macro ADD3 x, y=5, z:req\naddi \\x, \\x, \\y\naddi \\x, \\x, \\z\n.endm\nadd3 a2, 1, 2\nADD3 a3, z=4", "addi a2, a2, 1; addi a2, a2, 2; addi a3, a3, 5; addi a3, a3, 4"},
		{"macro of a part of a word", ".macro op w\nee.vmax.s\\w\\().ld.incp q0, a2, q1, q2, q3\n.endm\nop 16", "ee.vmax.s16.ld.incp q0, a2, q1, q2, q3"},
		{"labels of a macro", ".macro wait r\n.Lw\\@: addi \\r, \\r, -1\nbnez \\r, .Lw\\@\n.endm\nwait a2\nwait a3", "addi a2, a2, -1; bnez a2, .Lw0; addi a3, a3, -1; bnez a3, .Lw1"},
		{"macro in a macro", ".macro in r\nmovi \\r, 1\n.endm\n.macro out r\nin \\r\n.endm\nout a4", "movi a4, 1"},
		{"vararg", ".macro all op, rest:vararg\n\\op \\rest\n.endm\nall add, a2, a3, a4", "add a2, a3, a4"},
		{"rept", ".rept 3\nnop\n.endr", "nop; nop; nop"},
		{"rept of a rept", ".rept 2\n.rept 2\nnop\n.endr\nnop.n\n.endr", "nop; nop; nop.n; nop; nop; nop.n"},
		{"irp", ".irp r, 2, 3\nmovi a\\r, \\r\n.endr", "movi a2, 2; movi a3, 3"},
		{"irpc", ".irpc r, 45\nmovi a\\r, \\r\n.endr", "movi a4, 4; movi a5, 5"},
		{"if", ".set N, 2\n.if N == 1\nmovi a2, 1\n.elseif N == 2\nmovi a2, 2\n.else\nmovi a2, 3\n.endif", "movi a2, 2"},
		{"if within", ".if 0\n.if 1\nnop\n.else\nnop\n.endif\n.else\nnop.n\n.endif", "nop.n"},
		{"ifc", ".macro m k\n.ifc \\k, fast\nnop.n\n.else\nnop\n.endif\n.endm\nm fast\nm slow", "nop.n; nop"},
		{"ifdef, ifb", ".ifdef N\nnop\n.endif\n.macro m a, b\n.ifb \\b\nnop.n\n.endif\n.endm\nm 1\nm 1, 2", "nop.n"},
		{"a skipped part need not be right", ".if 0\nwhatever this is\n.endif\nnop", "nop"},
		{"literal", ".literal_position\n.literal .Lmask, 0x0f0f0f0f\nl32r a2, .Lmask", "l32r a2, .Lmask"},
		{"sections", ".section .iram1, \"ax\"\n.section .text.x\n.text\nnop", "nop"},
		{"local labels", "1: nop\nbeqz a2, 1f\nbeqz a2, 1b\n1: nop", "nop; beqz a2, 1f; beqz a2, 1b; nop"},
	} {
		p, err := Parse("x.S", []byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got := listing(p); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestLocalLabels(t *testing.T) {
	p := parse(t, "1: nop\nbeqz a2, 1f\nbeqz a2, 1b\n1: nop\nj 1b")
	if p.code[1].target != 3 || p.code[2].target != 0 || p.code[4].target != 3 {
		t.Errorf("targets %d, %d, %d", p.code[1].target, p.code[2].target, p.code[4].target)
	}
}

func TestSizes(t *testing.T) {
	p := parse(t, "nop.n\nee.vmulas.s8.accx.ld.ip q0, a2, 16, q1, q2\nee.vmulas.s8.qacc.ldbc.incp q0, a2, q1, q2\nnop\n.align 8\nnop")
	var at []uint32
	for i := range p.code {
		at = append(at, p.code[i].address-codeBase)
	}
	if !slices.Equal(at, []uint32{0, 2, 6, 9, 16}) {
		t.Errorf("addresses %v", at)
	}
}

func TestParseRefuses(t *testing.T) {
	far := strings.Repeat("nop\n", 44)
	for _, c := range []struct{ text, want string }{
		{"nop\nfoo a2", `x.S:2: unknown instruction "foo"`},
		{"ee.vmulas.s8u8.accx q0, q1", "did you mean"},
		{"ee.vadds.u8 q0, q1, q2", "unknown instruction"},
		{"add a2, a3", "takes 3 operands, not 2"},
		{"nop a2", "takes 0 operands"},
		{"add a2, a3, q4", "wants a register a0 to a15"},
		{"add a2, a3, a16", "wants a register a0"},
		{"add a2, a3, a04", "wants a register a0"},
		{"ee.zero.q q8", "wants a vector register q0 to q7"},
		{"add.s f1, f2, a3", "wants a float register"},
		{"bt a1, x\nx: nop", "wants a flag"},
		{"addi a2, a3, 128", "out of range: -128 to 127"},
		{"addi a2, a3, a4", "no value here"},
		{"addmi a2, a3, 100", "in steps of 256"},
		{"addi.n a2, a3, 0", "is not among"},
		{"beqi a2, 9, x\nx: nop", "9 is not among"},
		{"l32i a2, a3, 2", "in steps of 4"},
		{"slli a2, a3, 32", "out of range"},
		{"ee.vld.128.ip q0, a2, 8", "-2048 to 2032 in steps of 16"},
		{"ee.vld.128.ip q0, a2, 2048", "-2048 to 2032"},
		{"ee.vmulas.s8.accx.ld.ip q0, a2, 512, q1, q2", "-512 to 496"},
		{"ee.vldbc.8.ip q0, a2, 128", "0 to 127"},
		{"ee.srcmb.s8.qacc q0, a2, 1", "0 to 0"},
		{"const.s f0, 4", "0 to 3"},
		{"movi a2, 1 << 32", "out of range"},
		{"entry a2, 32", "stack pointer"},
		{"entry a1, 40", "in steps of 16"},
		{"addi a1, a1, -16", "ask entry for the room"},
		{"ee.vzip.8 q1, q1", "write q1 twice"},
		{"ee.vadds.s8.ld.incp q0, a2, q0, q1, q2", "write q0 twice"},
		{"ee.src.q.ld.ip q0, a2, 16, q0, q1", "write q0 twice"},
		{"nop\nentry a1, 32", "put .align 4"},
		{"x: nop\nx: nop", `label "x" is there already`},
		{"j y", `no label "y"`},
		{"j 1b\n1: nop", `no label "1b"`},
		{"beq a2, a3, x\n" + far + "x: nop", "bytes away"},
		{"beqz.n a2, x\nx: nop.n", "bytes away"},
		{"x: nop\nbeqz.n a2, x", "bytes away"},
		{"loop a2, x\n" + far + far + "x: nop", "body of the loop"},
		{"loop a2, x\nx: nop", "body of the loop has 0 bytes"},
		{"x: nop\nloop a2, x", "body of the loop"},
		{"loop a2, x\nnop\nloop a3, x\nnop\nx: nop", "within the loop of line 1"},
		{"loop a2, x\ncall8 y\nx: nop\n.align 4\ny: entry a1, 32", "within the loop"},
		{"loop a2, x\nretw\nx: nop", "within the loop"},
		{"nop\ncall8 y\ny: nop", "multiple of 4"},
		{"l32r a2, y", `no literal "y"`},
		{".global f\nnop", `no label "f" to be global`},
		{"#include \"x.h\"", "use .include"},
		{".include \"x.inc\"", "without its folder"},
		{".include x", "in quotes"},
		{"#if 1", "use .if"},
		{"#define F(x) x", "write a .macro"},
		{"#define A B\n#define B A\nmovi a2, A", "without end"},
		{".data", "unknown directive"},
		{".section .rodata", "code alone"},
		{".align 3", "power of two"},
		{".macro m\nnop", ".macro has no .endm"},
		{".rept 2\nnop\n.endm", "write .endr"},
		{".endr", "without its start"},
		{".macro m\n.endm\n.macro m\n.endm", "there already"},
		{".macro add x\n.endm", "name of an instruction"},
		{".macro m x\nmovi a2, \\x\n.endm\nm 5000000000", "in macro m, used at line 4"},
		{".macro m x\nmovi a2, \\x\n.endm\nm 1, 2", "takes 1 arguments, not 2"},
		{".macro m x:req\n.endm\nm", "wants a value for x"},
		{".macro m x\nee.v\\x.s8 q0, q1, q2\n.endm\nm max", `write \name\()`},
		{".macro m\nm\n.endm\nm", "more than 50 deep"},
		{".rept 100000\n.rept 100000\nnop\n.endr\n.endr", "more than"},
		{".if 1\nnop", ".if has no .endif"},
		{".else", "without .if"},
		{".if 1\n.else\n.else\n.endif", "after .else"},
		{".if x\n.endif", "no value here"},
		{".set a\n", "NAME, VALUE"},
		{"movi a2, 1 / 0", "division by zero"},
		{"movi a2, (1", "not closed"},
		{"movi a2, 1 2", "left over"},
		{"movi a2, 09x", "not a number"},
		{"/* open", "no end"},
		{"movi a2, \"1", "no end on its line"},
		{"movi a2, 1\u00a0", "write ASCII"},
		{".literal x", "NAME, VALUE"},
		{".literal x, 1\n.literal x, 2", "there already"},
		{".literal x, 1 << 33", "fit 32 bits"},
	} {
		_, err := Parse("x.S", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), ".S:") {
			t.Errorf("%.60q: %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestReach(t *testing.T) {
	// The last label that a branch reaches, and the first that it does not: 131 bytes ahead, 124 back.
	for n, ok := range map[int]bool{42: true, 43: false} {
		if _, err := Parse("x.S", []byte("beq a2, a3, x\n"+strings.Repeat("nop\n", n)+"nop.n\nx: nop")); (err == nil) != ok {
			t.Errorf("%d bytes ahead: %v", 3*n+5, err)
		}
	}
	for n, ok := range map[int]bool{40: true, 41: false} {
		if _, err := Parse("x.S", []byte("x: nop.n\nnop.n\n"+strings.Repeat("nop\n", n)+"beq a2, a3, x")); (err == nil) != ok {
			t.Errorf("%d bytes back: %v", 3*n+4, err)
		}
	}
	for n, ok := range map[int]bool{128: true, 129: false} {
		if _, err := Parse("x.S", []byte("loop a2, x\n"+strings.Repeat("nop.n\n", n)+"x: nop")); (err == nil) != ok {
			t.Errorf("a body of %d bytes: %v", 2*n, err)
		}
	}
}

func TestParseFile(t *testing.T) {
	fs := fstest.MapFS{
		"a.S":     {Data: []byte(".include \"b.inc\"\n.global f\n.align 4\nf: entry a1, 32\nput a2\nretw\n")},
		"b.inc":   {Data: []byte(".macro put r\nmovi \\r, 7\n.endm\n")},
		"bad.S":   {Data: []byte("nop\n.include \"bad.inc\"\n")},
		"bad.inc": {Data: []byte("\nwhat\n")},
		"self.S":  {Data: []byte(".include \"self.S\"\n")},
	}
	p, err := ParseFile(fs, "a.S")
	if err != nil {
		t.Fatal(err)
	}
	if i := p.Instructions()[1]; i.File != "b.inc" || i.Line != 2 || i.String() != "movi a2, 7" {
		t.Errorf("%+v", i)
	}
	if !slices.Equal(p.Functions(), []string{"f"}) {
		t.Errorf("functions %v", p.Functions())
	}
	for name, want := range map[string]string{"bad.S": "bad.inc:2: unknown", "self.S": "more than", "none.S": "none.S"} {
		if _, err := ParseFile(fs, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWith(t *testing.T) {
	p := parse(t, "f: add a2, a3, a4\nbeqz a2, f")
	q, err := p.With(0, "movi", "a2", "0x12345678")
	if err != nil || listing(q) != "movi a2, 0x12345678; beqz a2, f" || listing(p) != "add a2, a3, a4; beqz a2, f" {
		t.Errorf("%v, %v", q, err)
	}
	if len(p.literals) != 0 || q.literals[q.code[0].target] != 0x12345678 {
		t.Error("the constant is in the wrong place")
	}
	if _, err := p.With(2, "nop"); err == nil {
		t.Error("there is no instruction 2")
	}
	if _, err := p.With(0, "add", "a2"); err == nil {
		t.Error("an operand is missing")
	}
}

func TestFaultsAssemble(t *testing.T) {
	p := parse(t, dot8)
	n := 0
	for i, ins := range p.Instructions() {
		for _, f := range ins.Faults() {
			if n++; f.String() == ins.String() {
				t.Errorf("%v is no fault", f)
			}
			if _, err := p.With(i, f.Mnemonic, f.Operands...); err != nil {
				t.Errorf("%v -> %v: %v", ins, f, err)
			}
		}
	}
	if n < 25 {
		t.Errorf("%d faults in %d instructions", n, len(p.Instructions()))
	}
}

func FuzzParse(f *testing.F) {
	f.Add(dot8)
	f.Add(".macro m x, y=2\n.Lw\\@: addi \\x, \\x, \\y\n.endm\nm a2\n.rept 3\nm a3, 4\n.endr\n.irp r, 2, 3\nmovi a\\r, \\r\n.endr")
	f.Add("#define N (3+4)\n.set M, N*2\n.if M > 3\nmovi a2, M\n.else\n.literal x, 5\nl32r a2, x\n.endif\n1: j 1b")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse("x.S", []byte(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "x.S:") {
				t.Errorf("the error does not say where: %v", err)
			}
			return
		}
		// What was read can be changed and read again.
		for i, ins := range p.Instructions() {
			if i > 20 {
				break
			}
			q, err := p.With(i, ins.Mnemonic, ins.Operands...)
			if err != nil || listing(q) != listing(p) {
				t.Fatalf("%v put in its own place: %v", ins, err)
			}
		}
	})
}
