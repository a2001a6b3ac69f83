// The key of this page's sign-in. The browser sends the cookie to every port of this host; the key is
// kept with this port's pages, and each request shows it in a header.

const NAME = "tenure-sign-in";
let given = ""; // in a worker, which has no storage, and where storage is blocked

export function key() {
  try {
    return self.localStorage?.getItem(NAME) ?? given;
  } catch {
    return given;
  }
}

export function keep(told) {
  given = told;
  try {
    self.localStorage?.setItem(NAME, told);
  } catch {
    // another page of this manager has to sign in for itself
  }
}

export const signed = (headers = {}) => (key() ? { ...headers, "Tenure-Sign-In": key() } : headers);
