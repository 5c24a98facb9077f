// What a page hands to the scripts of this folder; for the check of types alone.

/** By search_index.py, the sections of the book. */
declare const SECTIONS: [page: string, address: string, title: string, text: string][];

/** By widget_state.py, the labs' scripts that lie in files, by address. */
interface Window {
  labScripts: Record<string, string>;
}
