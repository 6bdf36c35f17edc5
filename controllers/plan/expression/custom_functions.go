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

package expression

import (
	"crypto/sha3"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

const (
	// shortHash is the default length of the result of sha3short, in characters.
	shortHash = 20
	// maxUniq is the maximum number of items for uniq, and for distinct in CEL. Both compare all pairs of items. At the maximum
	// this costs about as much as CEL's cost limit allows.
	maxUniq = 1000
)

// customFunctions are functions that sprig lacks, and safe forms of sprig's functions. A safe form has a fixed order (keys,
// values), or limits the size of its result.
var customFunctions = template.FuncMap{
	"sha3sum": sha3sum, "sha3short": sha3short,
	"keys": keys, "values": values,
	"uniq": uniq, "mustUniq": uniq,
	"join": join, "indent": indent, "nindent": nindent, "replace": replace,
	"regexReplaceAll": regexReplace, "mustRegexReplaceAll": regexReplace,
	"regexReplaceAllLiteral": regexReplaceLiteral, "mustRegexReplaceAllLiteral": regexReplaceLiteral,
	"printf": printf,
}

var errTooLarge = fmt.Errorf("the result is larger than %d bytes", maxSize)

// sha3sum returns the SHA3-256 of a text, in hexadecimal digits.
func sha3sum(text string) string {
	sum := sha3.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// sha3short returns the first digits of sha3sum.
func sha3short(text string, length ...int) (string, error) {
	sum := sha3sum(text)
	switch {
	case len(length) == 0:
		return sum[:shortHash], nil
	case len(length) > 1 || length[0] < 1 || length[0] > len(sum):
		return "", fmt.Errorf("sha3short takes a text and a length from 1 to %d", len(sum))
	default:
		return sum[:length[0]], nil
	}
}

// keys returns the keys of the maps, sorted within each.
func keys(dicts ...map[string]any) []string {
	result := []string{}
	for _, dict := range dicts {
		result = append(result, slices.Sorted(maps.Keys(dict))...)
	}
	return result
}

// values returns the values of a map in the order of their keys.
func values(dict map[string]any) []any {
	result := make([]any, 0, len(dict))
	for _, key := range slices.Sorted(maps.Keys(dict)) {
		result = append(result, dict[key])
	}
	return result
}

var sprigUniq = sprig.GenericFuncMap()["mustUniq"].(func(any) ([]any, error))

func uniq(list any) ([]any, error) {
	if value := reflect.ValueOf(list); value.Kind() == reflect.Slice && value.Len() > maxUniq {
		return nil, fmt.Errorf("uniq takes at most %d items, the list has %d", maxUniq, value.Len())
	}
	return sprigUniq(list)
}

var toStrings = sprig.GenericFuncMap()["toStrings"].(func(any) []string)

func join(separator string, list any) (string, error) {
	texts := toStrings(list)
	size := len(separator) * len(texts)
	for _, text := range texts {
		size += len(text)
	}
	if size > maxSize {
		return "", errTooLarge
	}
	return strings.Join(texts, separator), nil
}

func indent(spaces int, text string) (string, error) {
	lines := strings.Count(text, "\n") + 1
	if spaces < 0 {
		return "", errors.New("indent takes a positive number of spaces")
	}
	if spaces > maxSize || lines*spaces+len(text) > maxSize {
		return "", errTooLarge
	}
	pad := strings.Repeat(" ", spaces)
	return pad + strings.ReplaceAll(text, "\n", "\n"+pad), nil
}

func nindent(spaces int, text string) (string, error) {
	indented, err := indent(spaces, text)
	return "\n" + indented, err
}

func replace(old, replacement, text string) (string, error) {
	if len(text)+strings.Count(text, old)*len(replacement) > maxSize {
		return "", errTooLarge
	}
	return strings.ReplaceAll(text, old, replacement), nil
}

func regexReplace(pattern, text, replacement string) (string, error) {
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return "", err
	}
	return ReplaceAll(compiled, text, replacement)
}

func regexReplaceLiteral(pattern, text, replacement string) (string, error) {
	return regexReplace(pattern, text, strings.ReplaceAll(replacement, "$", "$$"))
}

// ReplaceAll replaces each match of a pattern like ReplaceAllString, but returns an error if the result would be too large: a
// short replacement can insert the whole text many times. Each $ counts as the whole match.
func ReplaceAll(pattern *regexp.Regexp, text, replacement string) (string, error) {
	references := strings.Count(replacement, "$")
	var result []byte
	end := 0
	for _, match := range pattern.FindAllStringSubmatchIndex(text, -1) {
		result = append(result, text[end:match[0]]...)
		if len(result)+len(replacement)+references*(match[1]-match[0]) > maxSize {
			return "", errTooLarge
		}
		result = pattern.ExpandString(result, replacement, text, match)
		end = match[1]
	}
	return string(append(result, text[end:]...)), nil
}

// unsafeVerb matches a verb whose width has more than three digits or is an argument, or that prints an address in memory.
var unsafeVerb = regexp.MustCompile(`%[^a-zA-Z%]*([0-9]{4}|\*|p)`)

func printf(format string, arguments ...any) (string, error) {
	if verb := unsafeVerb.FindString(strings.ReplaceAll(format, "%%", "")); verb != "" {
		return "", fmt.Errorf("printf takes no %%p and no width of more than three digits or from an argument, as in %q", verb)
	}
	return fmt.Sprintf(format, arguments...), nil
}
