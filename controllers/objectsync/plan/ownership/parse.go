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

var versionField = fmt.Sprintf(`"v":%d`, MarkVersion)

// parseCanonicalMark parses a mark in the exact form that [Owner.Seal] and [Mark.String] write. The index, the handlers, each
// decision and each report parse the marks of changed objects. General JSON parsing would take longer than everything else
// about an object in sync. ok is false for any other form.
func parseCanonicalMark(annotation string) (mark Mark, ok bool) {
	mark.Version = MarkVersion
	in := markReader{rest: annotation}
	ok = in.readObjectStart("{") && in.readKey(versionField) &&
		readField(&in, `"hub":"`, &mark.Hub) &&
		readField(&in, `"syncTarget":"`, &mark.SyncTarget) &&
		readField(&in, `"mailbox":"`, &mark.Mailbox) &&
		readSource(&in, &mark.Source) &&
		readSelf(&in, &mark.Self) &&
		readField(&in, `"policy":"`, &mark.Policy) &&
		readField(&in, `"hash":"`, &mark.Hash) &&
		readOptionalField(&in, `"direction":"`, &mark.Direction)
	mark.Adopted = ok && in.readKey(`"adopted":true`)
	ok = ok &&
		readOptionalField(&in, `"ignored":"`, &mark.Ignored) &&
		readOptionalField(&in, `"relation":"`, &mark.Relation)
	return mark, ok && readSealAndEnd(&in)
}

// readSealAndEnd reads the seal, which is verified later, and the end.
func readSealAndEnd(in *markReader) bool {
	var seal string
	return readOptionalField(in, `"seal":"`, &seal) && in.readObjectEnd() && in.rest == ""
}

func readSource(in *markReader, source *Source) bool {
	return in.readObjectStart(`"source":{`) &&
		readOptionalField(in, `"group":"`, &source.Group) &&
		readField(in, `"resource":"`, &source.Resource) &&
		readOptionalField(in, `"namespace":"`, &source.Namespace) &&
		readField(in, `"name":"`, &source.Name) &&
		readField(in, `"uid":"`, &source.UID) &&
		in.readObjectEnd()
}

func readSelf(in *markReader, self *Self) bool {
	return in.readObjectStart(`"self":{`) &&
		readOptionalField(in, `"group":"`, &self.Group) &&
		readField(in, `"kind":"`, &self.Kind) &&
		readOptionalField(in, `"namespace":"`, &self.Namespace) &&
		readField(in, `"name":"`, &self.Name) &&
		in.readObjectEnd()
}

// markReader reads JSON without blanks.
type markReader struct {
	rest string
	// hasField is true once the object has a field.
	hasField bool
}

// readObjectStart reads the beginning of an object.
func (r *markReader) readObjectStart(beginning string) bool {
	found := r.readKey(beginning)
	r.hasField = false
	return found
}

// readKey reads the key of a field.
func (r *markReader) readKey(beginning string) bool {
	rest, separated := r.rest, true
	if r.hasField {
		rest, separated = strings.CutPrefix(rest, ",")
	}
	rest, found := strings.CutPrefix(rest, beginning)
	if !separated || !found {
		return false
	}
	r.rest, r.hasField = rest, true
	return true
}

// readObjectEnd reads the end of an object.
func (r *markReader) readObjectEnd() (found bool) {
	r.rest, found = strings.CutPrefix(r.rest, "}")
	r.hasField = true
	return found
}

// readField reads a string field.
func readField[T ~string](r *markReader, beginning string, into *T) bool {
	return r.readKey(beginning) && readString(r, into)
}

// readOptionalField reads a string field that is omitted if empty.
func readOptionalField[T ~string](r *markReader, beginning string, into *T) bool {
	return !r.readKey(beginning) || readString(r, into)
}

// readString reads a string up to its closing quote.
func readString[T ~string](r *markReader, into *T) bool {
	length, plain := stringLength(r.rest)
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

// stringLength returns the length of a string up to its closing quote, and whether it has no escapes.
func stringLength(text string) (length int, plain bool) {
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
