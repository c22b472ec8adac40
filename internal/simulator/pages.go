package simulator

import (
	"net/url"
	"strconv"
)

const maxPageSize = 100

// pageNumber parses the parameter page or limit; false if it is out of range. The
// provider's document does not define that error: here it is invalid_parameter,
// as for all other unknown values.
func pageNumber(name, value string) (int, bool) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || (name == "limit" && n > maxPageSize) {
		return 0, false
	}
	return n, true
}

// paginate returns the requested page of a list, and its meta. A page after the
// last is empty; an empty list has 0 pages.
func paginate(list []Object, query url.Values, size int) ([]Object, Object) {
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
