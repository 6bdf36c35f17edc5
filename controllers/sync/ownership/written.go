/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package ownership

import (
	"encoding/json"
	"fmt"
	"strings"
)

var writtenVersion = fmt.Sprintf(`"v":%d`, MarkVersion)

// readWritten reads a mark that stands as [Owner.Seal] or [Mark.String] writes it. The mark of an object that changes is read by the index, the
// router, each decision and each report, and to read it as any JSON takes longer than all else about an object in step. ok is
// false for whatever stands otherwise.
func readWritten(annotation string) (mark Mark, ok bool) {
	mark.Version = MarkVersion
	in := reader{rest: annotation}
	ok = in.opens("{") && in.enters(writtenVersion) &&
		has(&in, `"hub":"`, &mark.Hub) &&
		has(&in, `"syncTarget":"`, &mark.SyncTarget) &&
		has(&in, `"mailbox":"`, &mark.Mailbox) &&
		readSource(&in, &mark.Source) &&
		readSelf(&in, &mark.Self) &&
		has(&in, `"policy":"`, &mark.Policy) &&
		has(&in, `"hash":"`, &mark.Hash) &&
		mayHave(&in, `"direction":"`, &mark.Direction)
	mark.Adopted = ok && in.enters(`"adopted":true`)
	ok = ok &&
		mayHave(&in, `"ignored":"`, &mark.Ignored) &&
		mayHave(&in, `"relation":"`, &mark.Relation)
	return mark, ok && readEnd(&in)
}

// readEnd reads the seal, which is verified as it stands, and the end.
func readEnd(in *reader) bool {
	var seal string
	return mayHave(in, `"seal":"`, &seal) && in.closes() && in.rest == ""
}

func readSource(in *reader, source *Source) bool {
	return in.opens(`"source":{`) &&
		mayHave(in, `"group":"`, &source.Group) &&
		has(in, `"resource":"`, &source.Resource) &&
		mayHave(in, `"namespace":"`, &source.Namespace) &&
		has(in, `"name":"`, &source.Name) &&
		has(in, `"uid":"`, &source.UID) &&
		in.closes()
}

func readSelf(in *reader, self *Self) bool {
	return in.opens(`"self":{`) &&
		mayHave(in, `"group":"`, &self.Group) &&
		has(in, `"kind":"`, &self.Kind) &&
		mayHave(in, `"namespace":"`, &self.Namespace) &&
		has(in, `"name":"`, &self.Name) &&
		in.closes()
}

// reader goes through JSON without blanks.
type reader struct {
	rest string
	// within is true once the object that is read has a field.
	within bool
}

// opens reads the beginning of an object.
func (r *reader) opens(beginning string) bool {
	found := r.enters(beginning)
	r.within = false
	return found
}

// enters reads the beginning of a field.
func (r *reader) enters(beginning string) bool {
	rest, separated := r.rest, true
	if r.within {
		rest, separated = strings.CutPrefix(rest, ",")
	}
	rest, found := strings.CutPrefix(rest, beginning)
	if !separated || !found {
		return false
	}
	r.rest, r.within = rest, true
	return true
}

// closes reads the end of an object.
func (r *reader) closes() (found bool) {
	r.rest, found = strings.CutPrefix(r.rest, "}")
	r.within = true
	return found
}

// has reads a field of text.
func has[T ~string](r *reader, beginning string, into *T) bool {
	return r.enters(beginning) && reads(r, into)
}

// mayHave reads a field of text that is left out if it is empty.
func mayHave[T ~string](r *reader, beginning string, into *T) bool {
	return !r.enters(beginning) || reads(r, into)
}

// reads reads a text up to the quote at its end.
func reads[T ~string](r *reader, into *T) bool {
	length, plain := extent(r.rest)
	if length == len(r.rest) {
		return false
	}
	text := r.rest[:length]
	r.rest = r.rest[length+1:]
	if plain {
		*into = T(text)
		return true
	}
	var unescaped string
	err := json.Unmarshal([]byte(`"`+text+`"`), &unescaped)
	*into = T(unescaped)
	return err == nil
}

// extent returns how long a text is up to the quote at its end, and whether it is what it looks like.
func extent(text string) (length int, plain bool) {
	plain = true
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return i, plain
		case c == '\\':
			i++
			plain = false
		case c < ' ', c > '~':
			plain = false
		}
	}
	return len(text), plain
}
