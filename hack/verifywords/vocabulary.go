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

package main

import (
	"fmt"
	"strings"
)

// vocabulary holds the words that names must not have, each with the words to use instead.
type vocabulary struct {
	// anywhere are words that no part of a name may be.
	anywhere map[string]string
	// whole are names that are refused only as a whole, since their words are fine beside other words.
	whole map[string]string
}

// parseVocabulary reads lines of the form "word: use this instead". A word after "=" is refused as a whole name only.
// Empty lines and lines that start with "#" are skipped.
func parseVocabulary(text string) (*vocabulary, error) {
	v := &vocabulary{anywhere: map[string]string{}, whole: map[string]string{}}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		left, instead, found := strings.Cut(line, ":")
		instead = strings.TrimSpace(instead)
		if !found || instead == "" {
			return nil, fmt.Errorf("line %d does not have the form \"word: use this instead\"", number)
		}
		for word := range strings.FieldsSeq(left) {
			if err := v.add(word, instead); err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
		}
	}
	return v, nil
}

func (v *vocabulary) add(word, instead string) error {
	list := v.anywhere
	if name, ok := strings.CutPrefix(word, "="); ok {
		list, word = v.whole, name
	}
	if word != strings.ToLower(word) {
		return fmt.Errorf("write %s in lower case", word)
	}
	if _, twice := list[word]; twice {
		return fmt.Errorf("%s is listed twice", word)
	}
	list[word] = instead
	return nil
}

// check returns one error for each name with a listed word.
func (v *vocabulary) check(names []name) []error {
	var errs []error
	for _, one := range names {
		if word, instead := v.find(one.text); word != "" {
			errs = append(errs, fmt.Errorf("%s:%d: %s has the word %q: use %s", one.position.Filename, one.position.Line, one.text, word, instead))
		}
	}
	return errs
}

// find returns the first listed word of a name and what to use instead, or empty strings.
func (v *vocabulary) find(text string) (word, instead string) {
	if instead, ok := v.whole[strings.ToLower(text)]; ok {
		return strings.ToLower(text), instead
	}
	for _, word := range splitWords(text) {
		if instead, ok := v.anywhere[word]; ok {
			return word, instead
		}
	}
	return "", ""
}
