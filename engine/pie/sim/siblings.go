package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// likely are faults that writers make: an instruction in place of another one with the same operands.
var likely = func() map[string][]string {
	all := map[string][]string{}
	pair := func(x, y string) {
		all[x], all[y] = append(all[x], y), append(all[y], x)
	}
	for _, p := range [][2]string{{"add", "sub"}, {"and", "or"}, {"min", "max"}, {"minu", "maxu"}, {"addx2", "addx4"}, {"addx4", "addx8"},
		{"srli", "srai"}, {"srl", "sra"}, {"slli", "srli"}, {"mull", "muluh"}, {"moveqz", "movnez"}, {"movltz", "movgez"}, {"movt", "movf"},
		{"l16si", "l16ui"}, {"beq", "bne"}, {"blt", "bge"}, {"bltu", "bgeu"}, {"blt", "bltu"}, {"beqz", "bnez"}, {"bltz", "bgez"},
		{"beqi", "bnei"}, {"blti", "bgei"}, {"bltui", "bgeui"}, {"bany", "bnone"}, {"ball", "bnall"}, {"bbci", "bbsi"}, {"bbc", "bbs"},
		{"bt", "bf"}, {"beqz.n", "bnez.n"}, {"add.s", "sub.s"}, {"add.s", "mul.s"}, {"madd.s", "msub.s"}, {"round.s", "trunc.s"},
		{"floor.s", "ceil.s"}, {"float.s", "ufloat.s"}, {"olt.s", "ole.s"}, {"ult.s", "ule.s"}, {"oeq.s", "ueq.s"}, {"olt.s", "ult.s"},
		{"ole.s", "ule.s"}, {"movt.s", "movf.s"}, {"moveqz.s", "movnez.s"}, {"movltz.s", "movgez.s"}, {"neg.s", "abs.s"}, {"neg", "abs"},
		{"lsi", "lsip"}, {"ssi", "ssip"}, {"ee.andq", "ee.orq"}, {"ee.xorq", "ee.orq"}, {"ee.vsl.32", "ee.vsr.32"},
		{"ee.vmulas.s8.accx", "ee.vmulas.s8.qacc"}, {"ee.vmulas.s16.accx", "ee.vmulas.s16.qacc"}} {
		pair(p[0], p[1])
	}
	for name := range specs {
		if !strings.HasPrefix(name, "ee.") {
			continue
		}
		for _, r := range [][2]string{{"vadds", "vsubs"}, {"vmax", "vmin"}, {".s8", ".u8"}, {".s8", ".s16"}, {".s16", ".s32"}, {".ip", ".xp"},
			{".lt.", ".gt."}, {".l.", ".h."}, {"vzip", "vunzip"}, {".8", ".16"}, {".16", ".32"}, {"qacc_l", "qacc_h"}, {"slci", "srci"},
			{".eq.", ".lt."}, {"vmul.", "vmax."}} {
			if other := strings.Replace(name, r[0], r[1], 1); other != name && specs[other] != nil && !slices.Contains(all[name], other) {
				pair(name, other)
			}
		}
	}
	all["loopnez"], all["loopgtz"] = []string{"loop"}, []string{"loop"}
	return all
}()

// Faults are instructions that a writer could have put in place of this one by mistake: a sibling of the same operands,
// another register of the kind, an immediate one step away. They are the same on each call.
func (i Instruction) Faults() []Instruction {
	var all []Instruction
	s := specs[i.Mnemonic]
	if s == nil || i.Mnemonic == "entry" { // more room changes nothing, and less traps
		return nil
	}
	add := func(mnemonic string, operands []string) {
		f := Instruction{i.File, i.Line, mnemonic, operands}
		if t := specs[mnemonic]; t != nil {
			if _, _, err := t.decode(operands, nil); err == nil {
				all = append(all, f)
			}
		}
	}
	siblings := slices.Clone(likely[i.Mnemonic])
	slices.Sort(siblings)
	for _, other := range siblings {
		if still := len(i.Operands) == 3 && i.Operands[2] == "0"; still && (other+"p" == i.Mnemonic || other == i.Mnemonic+"p") {
			continue // lsi and lsip with a step of 0 are the same
		}
		add(other, i.Operands)
	}
	place := -1
	for k := range s.form {
		p := &s.form[k]
		if !p.isOperand() {
			continue
		}
		place++
		change := func(text string) {
			operands := slices.Clone(i.Operands)
			operands[place] = text
			add(i.Mnemonic, operands)
		}
		switch {
		case p.kind == "i" || constants[p.kind] != nil:
			v, err := strconv.ParseInt(i.Operands[place], 0, 64)
			if err != nil {
				continue
			}
			step := max(p.step, 1)
			change(fmt.Sprint(v - step))
			change(fmt.Sprint(v + step))
		case p.isLabel() || p.kind == "literal":
		default:
			most := 16
			if p.kind[0] == 'q' {
				most = 8
			}
			n := registerNumber(p.kind[:1], i.Operands[place])
			for _, by := range []int{1, most - 1} {
				other := (n + by) % most
				if p.kind[0] == 'a' && other == 1 { // the stack pointer is no slip
					other = (other + by) % most
				}
				change(fmt.Sprintf("%c%d", p.kind[0], other))
			}
		}
	}
	return all
}
