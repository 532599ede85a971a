//! Queries as the parameters of an address.

use core::fmt;

use super::{
    ActorQuery, EventsQuery, Filter, FilterError, GraphQuery, NoQuery, PAGES_MAX, Query, ROWS_MAX,
    Sort, TreeQuery,
};

/// The parameters of an address, decoded: `%20` is a space here.
pub type Params = Vec<(String, String)>;

/// A query that can be written as the parameters of an address.
pub trait QueryParams: Clone + fmt::Debug + PartialEq {
    /// The parameters; those with their usual value are left out.
    fn to_params(&self) -> Params;

    /// The query with these parameters. Unknown ones are ignored, as later versions may have more.
    ///
    /// # Errors
    ///
    /// If a value is invalid, or one that is necessary is missing.
    fn from_params(params: &[(String, String)]) -> Result<Self, QueryError>;
}

/// Parameters that are no query.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueryError {
    /// This parameter is necessary.
    Missing(&'static str),
    /// This parameter has an invalid value.
    Invalid(&'static str, String),
    /// The filter is invalid.
    Filter(FilterError),
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(name) => write!(f, "the parameter `{name}` is missing"),
            Self::Invalid(name, value) => write!(f, "`{value}` is no value of `{name}`"),
            Self::Filter(error) => write!(f, "the filter is invalid: {error}"),
        }
    }
}

impl core::error::Error for QueryError {}

fn get<'a>(params: &'a [(String, String)], name: &str) -> Option<&'a str> {
    params.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn number<N: core::str::FromStr>(
    params: &[(String, String)],
    name: &'static str,
    usual: N,
) -> Result<N, QueryError> {
    let Some(value) = get(params, name) else { return Ok(usual) };
    value.parse().map_err(|_| QueryError::Invalid(name, value.to_owned()))
}

/// The number of a page. Of one far behind, the rows before it would have to be passed.
fn page_of(params: &[(String, String)]) -> Result<u32, QueryError> {
    let page = number(params, "page", 0)?;
    if page < PAGES_MAX { Ok(page) } else { Err(QueryError::Invalid("page", page.to_string())) }
}

fn pair(name: &str, value: impl fmt::Display) -> (String, String) {
    (name.to_owned(), value.to_string())
}

impl QueryParams for Query {
    fn to_params(&self) -> Params {
        let usual = Self::default();
        let mut params = vec![pair("sort", self.sort.name())];
        if self.filter != usual.filter {
            params.push(pair("filter", &self.filter));
        }
        if self.page != usual.page {
            params.push(pair("page", self.page));
        }
        if self.rows != usual.rows {
            params.push(pair("rows", self.rows));
        }
        params
    }

    fn from_params(params: &[(String, String)]) -> Result<Self, QueryError> {
        let usual = Self::default();
        let sort = match get(params, "sort") {
            None => usual.sort,
            Some(name) => {
                Sort::of_name(name).ok_or_else(|| QueryError::Invalid("sort", name.to_owned()))?
            }
        };
        let filter = get(params, "filter").unwrap_or_default();
        let filter = Filter::parse(filter).map_err(QueryError::Filter)?;
        let page = page_of(params)?;
        let rows = number(params, "rows", usual.rows)?.clamp(1, ROWS_MAX);
        Ok(Self { sort, filter, page, rows })
    }
}

impl QueryParams for TreeQuery {
    fn to_params(&self) -> Params {
        let mut params = vec![pair("at", &self.at)];
        if self.page != 0 {
            params.push(pair("page", self.page));
        }
        params
    }

    fn from_params(params: &[(String, String)]) -> Result<Self, QueryError> {
        let at = get(params, "at").unwrap_or("/").to_owned();
        Ok(Self { at, page: page_of(params)? })
    }
}

impl QueryParams for ActorQuery {
    fn to_params(&self) -> Params {
        match self {
            Self::Path(path) => vec![pair("path", path)],
            Self::Pid(pid) => vec![pair("pid", pid)],
        }
    }

    fn from_params(params: &[(String, String)]) -> Result<Self, QueryError> {
        let path = get(params, "path").map(|path| Self::Path(path.to_owned()));
        let pid = || get(params, "pid").map(|pid| Self::Pid(pid.to_owned()));
        path.or_else(pid).ok_or(QueryError::Missing("path"))
    }
}

impl QueryParams for GraphQuery {
    fn to_params(&self) -> Params {
        vec![pair("name", &self.name)]
    }

    fn from_params(params: &[(String, String)]) -> Result<Self, QueryError> {
        let name = get(params, "name").ok_or(QueryError::Missing("name"))?;
        Ok(Self { name: name.to_owned() })
    }
}

impl QueryParams for EventsQuery {
    fn to_params(&self) -> Params {
        let mut params = vec![pair("since", self.since)];
        if !self.kinds.is_empty() {
            params.push(pair("kinds", self.kinds.join(",")));
        }
        params
    }

    fn from_params(params: &[(String, String)]) -> Result<Self, QueryError> {
        let kinds = get(params, "kinds").unwrap_or_default();
        let kinds = kinds.split(',').filter(|kind| !kind.is_empty()).map(str::to_owned);
        Ok(Self { since: number(params, "since", 0)?, kinds: kinds.collect() })
    }
}

impl QueryParams for NoQuery {
    fn to_params(&self) -> Params {
        Vec::new()
    }

    fn from_params(_: &[(String, String)]) -> Result<Self, QueryError> {
        Ok(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(pairs: &[(&str, &str)]) -> Params {
        pairs.iter().map(|(name, value)| pair(name, value)).collect()
    }

    fn reads_back<Q: QueryParams>(query: &Q) {
        assert_eq!(Q::from_params(&query.to_params()).as_ref(), Ok(query));
    }

    #[test]
    fn every_query_reads_back_what_it_wrote() {
        let filter = Filter::parse("till -path:/system depth>1k").unwrap();
        reads_back(&Query { sort: Sort::Wait, filter, page: 3, rows: 20 });
        reads_back(&Query::default());
        reads_back(&TreeQuery { at: "/user/shop".into(), page: 2 });
        reads_back(&ActorQuery::Path("/user/shop".into()));
        reads_back(&ActorQuery::Pid("{0|3.1}".into()));
        reads_back(&GraphQuery { name: "arm".into() });
        reads_back(&EventsQuery { since: 12, kinds: vec!["failure".into(), "stuck".into()] });
        reads_back(&NoQuery);
    }

    #[test]
    fn a_page_has_at_most_two_hundred_rows() {
        assert_eq!(Query::from_params(&params(&[("rows", "5000")])).unwrap().rows, ROWS_MAX);
        assert_eq!(Query::from_params(&params(&[("rows", "0")])).unwrap().rows, 1);
    }

    #[test]
    fn an_invalid_query_is_refused_with_its_reason() {
        let error = |pairs: &[_]| Query::from_params(&params(pairs)).unwrap_err().to_string();
        assert_eq!(error(&[("sort", "size")]), "`size` is no value of `sort`");
        assert_eq!(error(&[("page", "5000")]), "`5000` is no value of `page`");
        assert!(Query::from_params(&params(&[("page", "4999")])).is_ok());
        assert_eq!(error(&[("page", "-1")]), "`-1` is no value of `page`");
        assert!(error(&[("filter", "depth>x")]).starts_with("the filter is invalid: "));
        let missing = ActorQuery::from_params(&[]).unwrap_err().to_string();
        assert_eq!(missing, "the parameter `path` is missing");
    }
}
