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

package fastjson

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// bookmarkInterval is the number of dropped events after which a watch reports its progress. Without bookmarks, a watch that
// drops all events would be resumed at a resource version that the server no longer has.
const bookmarkInterval = 100

// Filter drops objects that a wildcard list or watch returns before they are decoded. An object without the annotation is kept, and so
// is one that cannot be read: its reader gets the decoder's error.
type Filter struct {
	// Annotation is the annotation whose value decides whether an object is dropped.
	Annotation string
	// Drops reports whether objects with a value are dropped. It must not keep the value.
	Drops func(value []byte) bool
}

// dropsObject reports whether an object is dropped. The cursor is before the object.
func (f *Filter) dropsObject(at cursor) bool {
	if !at.find("metadata") || !at.find("annotations") || !at.find(f.Annotation) {
		return false
	}
	value, ok := at.text()
	return ok && bytes.IndexByte(value, '\\') < 0 && f.Drops(value)
}

// dropsEvent reports whether a watch event is dropped. Events without an object of the server's, as errors and bookmarks, are kept.
func (f *Filter) dropsEvent(event []byte) bool {
	at := cursor{rest: event}
	kind, object := at, at
	if !kind.find("type") || !object.find("object") {
		return false
	}
	switch text, _ := kind.text(); string(text) {
	case "ADDED", "MODIFIED", "DELETED":
		return f.dropsObject(object)
	default:
		return false
	}
}

// bookmarkFor returns a bookmark in place of a dropped event; nil if the event has no resource version.
func bookmarkFor(event []byte) []byte {
	at := cursor{rest: event}
	if !at.find("object") || !at.find("metadata") || !at.find("resourceVersion") {
		return nil
	}
	version, ok := at.text()
	if !ok {
		return nil
	}
	return fmt.Appendf(nil, `{"type":"BOOKMARK","object":{"kind":"Bookmark","apiVersion":"v1","metadata":{"resourceVersion":"%s"}}}`, version)
}

// dropItems removes the dropped objects from the text of a list, in place.
func (f *Filter) dropItems(list []byte) []byte {
	at := cursor{rest: list}
	if !at.find("items") || !at.take('[') {
		return list
	}
	end, kept, unread := len(list)-len(at.rest), 0, at
	for {
		before := at
		before.skipSpace()
		if !at.skip() || !at.isBefore(',', ']') {
			// The end of an empty list, or text that the decoder will refuse.
			return append(list[:end], unread.rest...)
		}
		if !f.dropsObject(before) {
			if kept > 0 {
				list[end], end = ',', end+1
			}
			end += copy(list[end:], before.rest[:len(before.rest)-len(at.rest)])
			kept++
		}
		unread = at
		if !at.take(',') {
			return append(list[:end], at.rest...)
		}
	}
}

// filteringSerializer is a fastSerializer that decodes only the items of a list that its filter keeps.
type filteringSerializer struct {
	runtime.Serializer
	filter *Filter
}

func (s filteringSerializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if _, isList := into.(*unstructured.UnstructuredList); isList {
		data = s.filter.dropItems(data)
	}
	return s.Serializer.Decode(data, defaults, into)
}

// cursor reads JSON without decoding it. It checks only the syntax that it needs to find fields: a decoder must check the
// text too.
type cursor struct{ rest []byte }

func (c *cursor) skipSpace() {
	for len(c.rest) > 0 && (c.rest[0] == ' ' || c.rest[0] == '\n' || c.rest[0] == '\t' || c.rest[0] == '\r') {
		c.rest = c.rest[1:]
	}
}

// take skips white space and one character, if it comes next.
func (c *cursor) take(next byte) bool {
	c.skipSpace()
	if len(c.rest) == 0 || c.rest[0] != next {
		return false
	}
	c.rest = c.rest[1:]
	return true
}

// isBefore skips white space, and reports whether one of two characters comes next.
func (c *cursor) isBefore(one, other byte) bool {
	c.skipSpace()
	return len(c.rest) > 0 && (c.rest[0] == one || c.rest[0] == other)
}

// text reads a string, and returns it without the quotes and with the escapes.
func (c *cursor) text() (text []byte, ok bool) {
	if !c.take('"') {
		return nil, false
	}
	for at := 0; ; at++ {
		next := bytes.IndexByte(c.rest[at:], '"')
		if next < 0 {
			return nil, false
		}
		at += next
		escapes := 0
		for at > escapes && c.rest[at-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			text, c.rest = c.rest[:at], c.rest[at+1:]
			return text, true
		}
	}
}

// find moves the cursor from before an object to before the value of one of its fields.
func (c *cursor) find(field string) bool {
	if !c.take('{') {
		return false
	}
	for {
		key, ok := c.text()
		switch {
		case !ok || !c.take(':'):
			return false
		case string(key) == field:
			return true
		case !c.skip() || !c.take(','):
			return false
		}
	}
}

// skip skips a value.
func (c *cursor) skip() bool {
	c.skipSpace()
	if len(c.rest) == 0 {
		return false
	}
	switch c.rest[0] {
	case '"':
		_, ok := c.text()
		return ok
	case '{', '[':
		return c.skipNested()
	case '}', ']', ',', ':':
		return false
	default:
		end := bytes.IndexAny(c.rest, ",}] \n\t\r")
		if end < 0 {
			end = len(c.rest)
		}
		c.rest = c.rest[end:]
		return true
	}
}

// skipNested skips an object or an array.
func (c *cursor) skipNested() bool {
	for depth, at := 0, 0; at < len(c.rest); at++ {
		switch c.rest[at] {
		case '"':
			inner := cursor{rest: c.rest[at:]}
			if _, ok := inner.text(); !ok {
				return false
			}
			at = len(c.rest) - len(inner.rest) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				c.rest = c.rest[at+1:]
				return true
			}
		}
	}
	return false
}
