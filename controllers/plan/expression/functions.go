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
	"maps"
	"slices"
	"strings"
	"sync"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// safeSprigFunctions are the functions of sprig that templates may use. Their results depend only on the arguments, and are not
// much larger. They do not change an argument. Excluded are functions that
//   - read the environment, the network, the clock, a time zone, the platform or randomness (env, getHostByName, now, date,
//     osBase, shuffle, uuidv4),
//   - create keys and passwords,
//   - change an argument (set, unset, merge),
//   - return far more than they get (repeat, until, seq, toPrettyJson, wrapWith).
//
// [customFunctions] has safe forms of some of these.
const safeSprigFunctions = `
	abbrev abbrevboth cat contains hasPrefix hasSuffix initials lower nospace plural quote snakecase camelcase kebabcase
	split splitList splitn squote substr swapcase title toString toStrings trim trimAll trimPrefix trimSuffix trimall
	trunc untitle upper wrap

	regexFind regexFindAll regexMatch regexQuoteMeta regexSplit
	mustRegexFind mustRegexFindAll mustRegexMatch mustRegexSplit

	add add1 add1f addf atoi biggest ceil div divf float64 floor int int64 max maxf min minf mod mul mulf round sub subf
	toDecimal duration durationRound semver semverCompare

	all any coalesce default empty fail ternary
	deepEqual kindIs kindOf typeIs typeIsLike typeOf

	append chunk compact concat dict dig first get has hasKey initial last list omit pick pluck prepend push rest reverse
	slice sortAlpha tuple without
	mustAppend mustChunk mustCompact mustFirst mustHas mustInitial mustLast mustPrepend mustPush mustRest mustReverse
	mustSlice mustWithout

	adler32sum b32dec b32enc b64dec b64enc sha1sum sha256sum sha512sum
	fromJson mustFromJson mustToJson mustToRawJson toJson toRawJson
	base clean dir ext isAbs urlJoin urlParse
`

// Functions returns the sorted names of the functions that a template may call beside the predefined functions of Go templates
// (and, call, eq, ge, gt, html, index, js, le, len, lt, ne, not, or, print, println, urlquery; slice is sprig's).
func Functions() []string { return slices.Sorted(maps.Keys(templateFunctions())) }

// templateFunctions returns the functions that a template may call.
var templateFunctions = sync.OnceValue(func() template.FuncMap {
	all := sprig.GenericFuncMap()
	result := template.FuncMap{}
	for name := range strings.FieldsSeq(safeSprigFunctions) {
		result[name] = all[name]
	}
	maps.Copy(result, customFunctions)
	return result
})
