package simulator

import (
	"net/url"
	"strconv"
)

const largestPage = 100

// pageNumber reads the parameter page or limit; false where it is out of
// bounds. The document leaves open what happens then: here it is the
// invalid_parameter of any other unknown value.
func pageNumber(name, value string) (int, bool) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || (name == "limit" && n > largestPage) {
		return 0, false
	}
	return n, true
}

// cut takes the page that the query asks for, and describes it. A page past
// the end is empty; an empty list has no pages.
func cut(list []Object, query url.Values, size int) ([]Object, Object) {
	page := 1
	if n, ok := pageNumber("limit", query.Get("limit")); ok {
		size = n
	}
	if n, ok := pageNumber("page", query.Get("page")); ok {
		page = n
	}
	pages := (len(list) + size - 1) / size
	meta := Object{"total": len(list), "page": page, "pages": pages, "limit": size}
	if page > pages {
		return nil, meta
	}
	from := (page - 1) * size
	return list[from:min(from+size, len(list))], meta
}
