package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/problem"
)

// Heads lists the heads that can be planned.
func Heads() []string {
	return []string{
		string(HeadCausal), string(HeadMasked), string(HeadSeq2Seq), string(HeadImage),
		string(HeadSequence), string(HeadToken), string(HeadQuestion), string(HeadReward), string(HeadContrastive),
	}
}

// architecture is the first class name of architectures, "" if there is none.
func (f *fields) architecture() string {
	raw, _, st := f.find("architectures")
	if st != given {
		return ""
	}
	var names []string
	if err := json.Unmarshal(raw, &names); err != nil {
		f.fail("%sarchitectures is %s; it must be a list of class names or null", f.at, show(raw))
		return ""
	}
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// setHead settles the head: what the caller asks for, else what architectures
// says, else the family's usual one.
func (m *Model) setHead(fam *family, arch, asked string) error {
	switch {
	case asked != "":
		head := headNamed(asked)
		if !slices.Contains(fam.heads(), head) {
			return fmt.Errorf("head %q: %s has %s", asked, m.ModelType, either(fam.heads()))
		}
		m.Head = head
	case arch == "":
		m.Head = fam.head
		m.Assumed = append(m.Assumed, Assumption{
			Field: "architectures", Value: fam.class,
			Why: "the file names none; the usual head of " + m.ModelType,
		})
	default:
		head, ok := fam.headOf(arch)
		if !ok {
			return problem.New("architectures names %q, a head that is not modelled for %s: give {head} %s to plan the model with that head instead",
				arch, m.ModelType, fam.head)
		}
		m.Head = head
	}
	m.Class = fam.classOf(m.Head)
	return nil
}

// headWords are other names of heads, in the words of transformers' pipelines
// and of people.
var headWords = map[string]Head{
	"causal-lm": HeadCausal, "text-generation": HeadCausal, "lm": HeadCausal,
	"masked-lm": HeadMasked, "fill-mask": HeadMasked, "mlm": HeadMasked,
	"seq2seq-lm": HeadSeq2Seq, "text2text-generation": HeadSeq2Seq, "image-classification": HeadImage,
	"sequence-classification": HeadSequence, "text-classification": HeadSequence, "seq-cls": HeadSequence, "classification": HeadSequence,
	"token-classification": HeadToken, "token-cls": HeadToken, "ner": HeadToken,
	"question-answering": HeadQuestion, "qa": HeadQuestion, "reward-model": HeadReward, "rm": HeadReward,
	"base": HeadNone,
}

func headNamed(word string) Head {
	word = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(word)), "_", "-")
	if h, ok := headWords[word]; ok {
		return h
	}
	return Head(word)
}

// heads are those that the family can be planned with.
func (fam *family) heads() []Head {
	out := append([]Head{fam.head}, fam.more...)
	if slices.Contains(fam.more, HeadSequence) {
		out = append(out, HeadReward)
	}
	return append(out, HeadNone)
}

// either lists heads in a message, but for none, which nothing can be planned with.
func either(heads []Head) string {
	var out []string
	for _, h := range heads {
		if h != HeadNone {
			out = append(out, string(h))
		}
	}
	last := len(out) - 1
	if last == 0 {
		return out[0] + " alone"
	}
	return strings.Join(out[:last], ", ") + " or " + out[last]
}

// scoring are the ends of the names of classes that score.
var scoring = map[Head]string{
	HeadSequence: "ForSequenceClassification", HeadReward: "ForSequenceClassification",
	HeadToken: "ForTokenClassification", HeadQuestion: "ForQuestionAnswering",
}

// Scores reports whether a head scores sequences or tokens.
func (h Head) Scores() bool { return scoring[h] != "" }

// classOf is the class that has a head.
func (fam *family) classOf(h Head) string {
	switch h {
	case fam.head:
		return fam.class
	case HeadNone:
		return fam.base
	case HeadImage:
		return strings.TrimSuffix(fam.class, "Model") + "ForImageClassification"
	}
	return strings.TrimSuffix(fam.base, "Model") + scoring[h]
}

// UsualHead is the head of the model's family.
func (m *Model) UsualHead() Head {
	fam, _ := familyOf(m.ModelType)
	return fam.head
}

// headOf is the head of a class of the family. The multimodal class of a family
// scores as its text model does.
func (fam *family) headOf(class string) (Head, bool) {
	for _, h := range append([]Head{fam.head, HeadNone}, fam.more...) {
		if own := fam.classOf(h); class == own || class == strings.Replace(own, "Text", "", 1) {
			return h, true
		}
	}
	return fam.head, slices.Contains(fam.also, class)
}
